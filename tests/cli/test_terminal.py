"""Colour and width: what the caller's terminal is like, and what they said about it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from desk import Sitting

from skillrun.cli.terminal import wants_colour
from skillrun.report.text import width

if TYPE_CHECKING:
    from desk import Desk


def on_a_terminal(desk: Desk, *words: str, **more: str) -> str:
    """Run skillrun with a terminal as its output, and return what it wrote there."""
    outer, inner = pty.openpty()
    process = subprocess.Popen(
        desk.command(*words), cwd=desk.here, env=desk.environment(TERM="xterm", **more), stdin=inner, stdout=inner,
        stderr=inner, start_new_session=True,
    )  # fmt: skip
    os.close(inner)
    written = b""
    while True:
        try:
            chunk = os.read(outer, 65536)
        except OSError:  # the other end is closed
            break
        if not chunk:
            break
        written += chunk
    process.wait(20)
    os.close(outer)
    return written.decode()


def test_colour_on_a_terminal_and_nowhere_else(desk: Desk) -> None:
    """A terminal gets colour, a pipe does not."""
    desk.skill("demo")
    assert "\x1b[1m" in on_a_terminal(desk, "list")
    assert "\x1b" not in desk("list").stdout


@pytest.mark.parametrize(
    ("words", "environ", "colour"),
    [
        ([], {"NO_COLOR": "1"}, False),
        ([], {"NO_COLOR": ""}, True),
        ([], {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        (["--color", "always"], {"NO_COLOR": "1"}, True),
        (["--color", "never"], {"FORCE_COLOR": "1"}, False),
        (["--color", "auto"], {}, True),
    ],
)
def test_who_decides_on_colour(desk: Desk, words: list[str], environ: dict[str, str], colour: bool) -> None:  # noqa: FBT001 - a parameter
    """On a terminal: `--color` before NO_COLOR before FORCE_COLOR."""
    desk.skill("demo")
    assert ("\x1b[" in on_a_terminal(desk, "list", *words, **environ)) is colour


def test_colour_can_be_forced_into_a_pipe(desk: Desk) -> None:
    """FORCE_COLOR and `--color always` reach a pipe, on both streams, also for an error."""
    desk.skill("demo")
    assert "\x1b[" in desk("list", FORCE_COLOR="1").stdout
    assert "\x1b[" in desk("list", "--color", "always").stdout
    assert "\x1b[" in desk("list", "nowhere", FORCE_COLOR="1").stderr
    assert "\x1b[" in desk("lst", FORCE_COLOR="1").stderr
    assert "\x1b" not in desk("list", FORCE_COLOR="0").stdout


def test_a_dumb_terminal_gets_none() -> None:
    """TERM=dumb is no place for colour; --color still decides."""
    assert not wants_colour({"TERM": "dumb"}, said=None, terminal=True)
    assert wants_colour({"TERM": "dumb"}, said=True, terminal=True)


@pytest.mark.parametrize(
    "words", [["list"], ["show", "demo"], ["doctor"], ["explain", "demo", "--read", "x"]]
)
def test_a_narrow_terminal(desk: Desk, words: list[str]) -> None:
    """In 40 columns text is broken at blanks; only a word that is too long, such as a path, runs over."""
    folder = desk.skill(
        "demo", front="fs_read: [./data, ./more, ./and, ./some, ./others]\nfs_write: [./out]\n"
    )
    (folder / "SKILL.md").write_text(
        (folder / "SKILL.md").read_text().replace("For a test.", "A description of many short words " * 5)
    )
    for line in desk(*words, COLUMNS="40").stdout.splitlines():
        longest = max((width(word) for word in line.split()), default=0)
        assert width(line) <= 40 or longest > 12, line


def test_a_locale_without_utf8_is_no_trap(desk: Desk) -> None:
    """A stream that can't take a character gets it escaped; JSON stays UTF-8."""
    folder = desk.skill("demo")
    text = (folder / "SKILL.md").read_text(encoding="utf-8").replace("For a test.", "Größe → 大")
    (folder / "SKILL.md").write_text(text, encoding="utf-8")
    done = desk("list", PYTHONIOENCODING="latin-1", PYTHONUTF8="0")
    assert done.returncode == 0
    assert "\\u2192 \\u5927" in done.stdout
    assert desk("list", PYTHONIOENCODING="ascii", PYTHONUTF8="0", LC_ALL="C").returncode == 0
    assert "Größe → 大" in desk("list", "--json", PYTHONIOENCODING="ascii").stdout


@pytest.mark.parametrize(("typed", "written"), [("yes", True), ("y", False), (None, False)])
def test_a_lock_is_approved_by_a_whole_yes(desk: Desk, typed: str | None, written: object) -> None:
    """`lock --approve` asks at the terminal; a letter and the end of input are a no, and no bug."""
    desk.skill("demo")
    sitting = Sitting(desk, "lock", "--approve", "demo")
    sitting.until("type yes:")
    if typed is None:
        sitting.close_input()
    else:
        sitting.type(typed)
    assert sitting.end() == (0 if written else 1)
    assert (desk.here / "skillrun.lock").exists() is written


def test_the_version_is_nearly_free(desk: Desk) -> None:
    """`--version` loads neither the library nor its dependencies, and takes at most four times `import click`."""
    listing = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "skillrun", "--version"], capture_output=True, text=True, check=True,
        cwd=desk.here, env=desk.environment(),
    )  # fmt: skip
    assert listing.stdout == "skillrun 0.1.0\n"
    for heavy in (
        "yaml",
        "psutil",
        "jinja2",
        "jsonschema",
        "skillrun.runner",
        "skillrun.skills",
        "skillrun.permissions",
    ):
        assert f" {heavy}\n" not in listing.stderr, heavy

    def best(*words: str) -> float:
        times = []
        for _ in range(5):
            began = time.perf_counter()
            subprocess.run(
                [sys.executable, *words],
                cwd=desk.here,
                env=desk.environment(),
                check=True,
                capture_output=True,
            )
            times.append(time.perf_counter() - began)
        return min(times)

    assert best("-m", "skillrun", "--version") <= 4 * best("-c", "import click")


def test_no_import_from_the_current_folder(desk: Desk) -> None:
    """`python -m skillrun` in a folder with a `click.py` and a `yaml.py` of somebody else runs neither (law 10)."""
    for name in ("click", "yaml", "psutil"):
        (desk.here / f"{name}.py").write_text("raise SystemExit('imported from the current folder')\n")
    desk.skill("demo")
    done = desk("doctor", "--json")
    assert "imported from the current folder" not in done.stderr + done.stdout
    done = desk("list")
    assert (done.returncode, done.stderr) == (0, "")
