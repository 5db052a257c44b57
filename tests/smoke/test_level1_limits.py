"""Each line of `profiles/linux/level1.yaml` is tried: level 1 can't, level 2 can, and the failure is told."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from skillrun import resources
from skillrun.sandbox.linux.limits import limits_met, limits_of

if TYPE_CHECKING:
    from attack import Scene

TABLE = {row["limit"]: row for row in resources.table("linux/level1")}
# A script for each limit: exits 0 where it holds not, with a failure where it does.
TRIES = {
    "modes-and-times": "import os, sys\nopen('f','w'); os.chmod('f', 0o640); sys.exit(os.stat('f').st_mode & 0o777 != 0o640)",
    "new-programs": (
        "import os, subprocess, sys\nopen('p','w').write('#!/bin/sh\\nexit 0\\n'); os.chmod('p', 0o755)\n"
        "sys.exit(subprocess.run(['sh', '-c', './p']).returncode)"
    ),
    "shared-locks": "import multiprocessing\nmultiprocessing.Lock()",
    "sockets": "import socket\nsocket.socket()",
    "proc": "open('/proc/self/status').read()",
    "terminals": "import pty\npty.openpty()",
    "watches": (
        "import ctypes, os, sys\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "if libc.inotify_init1(0) < 0: sys.exit('inotify: ' + os.strerror(ctypes.get_errno()))"
    ),
    "shared-tmp": "open('/tmp/skill-was-here', 'w')",
    "split-folders": "open('new-file', 'w')",
}


@pytest.mark.parametrize("limit", TABLE)
def test_the_limit_is_real(scene: Scene, limit: str) -> None:
    """The script fails at level 1 and works at level 2."""
    if limit == "split-folders":
        scene.folder(scene.workspace / ".git" / "hooks")
        scene.file(scene.workspace / ".git" / "config", "[core]\n")
    scene.options["temporary"] = "/tmp"
    scene.script(TRIES[limit], prelude=False)

    run = scene.confined()

    assert (run.code == 0) is (scene.level == 2), (run.code, run.err)


@pytest.mark.level(1)
@pytest.mark.parametrize("limit", [name for name, row in TABLE.items() if row["seen"] is not None])
def test_a_failed_run_tells_of_it(scene: Scene, limit: str) -> None:
    """The Result of a run that failed on the limit names it, as a guess."""
    scene.options["temporary"] = "/tmp"
    scene.script(TRIES[limit], prelude=False)

    run = scene.confined()

    assert f"level1-{limit}" in run.rules, (run.rules, run.err)


def test_a_run_that_says_nothing_of_the_kind_is_not_blamed_on_the_sandbox() -> None:
    """Without evidence no limit is named, and at level 2 none at all."""
    assert not list(limits_met(1, "ValueError: the table has no column `x`"))
    assert not list(limits_met(2, "PermissionError: /dev/shm"))
    assert not list(limits_met(None, "PermissionError: /dev/shm"))


def test_only_level_1_has_limits() -> None:
    """The table is shown for level 1 and for no other."""
    assert [name for name, _, _ in limits_of(1)] == list(TABLE)
    assert limits_of(2) == ()
    assert limits_of(None) == ()


def test_every_pattern_compiles() -> None:
    """A pattern that does not compile would turn a failed run into a crash."""
    for row in TABLE.values():
        re.compile(row["seen"] or "")
