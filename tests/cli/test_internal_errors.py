"""A bug in skillrun is said as such: no traceback, the exit code of a failure, and how to see more."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from desk import Desk

BUG = """
import sys
from skillrun.runner import Runner
from skillrun.skills import catalog
def boom(*_, **__):
    raise ZeroDivisionError("a \\x1b[2J bug")
Runner.run = Runner.preview = boom
import skillrun.cli.list
skillrun.cli.list.look_through = boom
from skillrun.cli import main
sys.exit(main(sys.argv[1:]))
"""


def with_a_bug(desk: Desk, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run skillrun with a fault in the middle of it."""
    return subprocess.run(
        [sys.executable, "-c", BUG, *words], cwd=desk.here, env=desk.environment(**more), capture_output=True, text=True,
        check=False, timeout=60,
    )  # fmt: skip


@pytest.mark.parametrize(("words", "code"), [(["run", "demo"], 125), (["show", "demo"], 2), (["list"], 2)])
def test_an_unexpected_exception(desk: Desk, words: list[str], code: int) -> None:
    """`error[internal]` and no traceback; SKILLRUN_DEBUG=1 shows it."""
    desk.skill("demo")
    done = with_a_bug(desk, *words)
    assert (done.returncode, done.stdout) == (code, "")
    assert "error[internal]: ZeroDivisionError: a \\x1b[2J bug; this is a bug in skillrun" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Traceback" in with_a_bug(desk, *words, SKILLRUN_DEBUG="1").stderr


def test_the_tree_is_ended_with_it(desk: Desk) -> None:
    """Also then nothing of skillrun is left in its temporary folder."""
    desk.skill("demo")
    temporary = desk.home / "temporary"
    temporary.mkdir()
    assert with_a_bug(desk, "run", "demo", TMPDIR=str(temporary)).returncode == 125
    assert list(temporary.iterdir()) == []
