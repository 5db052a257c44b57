"""Launching: a confined `/bin/true` through the library, against plain subprocess.run and bubblewrap."""

from __future__ import annotations

import contextlib
import shutil
import statistics
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.measure import Row, in_turn, one_upon_the_other
from skillrun import Runner, current_host

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# As issue 4 names them, with the least binds that start /bin/true.
BWRAP = (
    "bwrap --unshare-all --die-with-parent --new-session --cap-drop ALL --ro-bind /usr /usr --symlink usr/bin /bin "
    "--symlink usr/lib /lib --symlink usr/lib64 /lib64 --proc /proc --dev /dev --tmpfs /tmp"
)


_LAUNCHERS = 5
WHAT = "/bin/true through the library"
_NAMES = {"plain": "subprocess.run", "bwrap": "bubblewrap", "level 1": "level 1", "level 2": "level 2"}


def plain() -> None:
    """Start /bin/true and take its output."""
    subprocess.run(["/bin/true"], capture_output=True, check=True)


@contextlib.contextmanager
def runs() -> Iterator[dict[str, Callable[[], object]]]:
    """Give plain, bubblewrap and both levels as things to do."""
    with tempfile.TemporaryDirectory() as top, contextlib.ExitStack() as stack:
        workspace = Path(top, "work")
        script = Path(top, "skills/true/scripts/true.sh")
        workspace.mkdir()
        script.parent.mkdir(parents=True)
        script.write_text("#!/bin/true\n")
        script.parent.with_name("SKILL.md").write_text(
            "---\nname: true\ndescription: d\n---\n".replace("true", '"true"')
        )
        things: dict[str, Callable[[], object]] = {"plain": plain}
        if shutil.which("bwrap"):
            command = [*BWRAP.split(), "--bind", str(workspace), str(workspace), "/bin/true"]
            things["bwrap"] = lambda: subprocess.run(command, capture_output=True, check=True)
        for level in (1, 2):
            runner = stack.enter_context(
                Runner(
                    workspace=workspace,
                    skills=[script.parents[2]],
                    host=current_host(),
                    backend=f"linux-{level}",
                )
            )
            skill = runner.find(script.parents[1])
            probe = runner.launcher.probe()
            if level == 1 or probe.level2:
                things[f"level {level}"] = lambda runner=runner, skill=skill: started(runner, skill)  # type: ignore[misc]
        yield things


def started(runner: Runner, skill: object) -> None:
    """Run the script, and make sure that it ran."""
    result = runner.run(skill)  # type: ignore[arg-type]
    assert result.ok, result.error


def rows(rounds: int) -> list[Row]:
    """Compare a launch at each level with what it stands beside, by several launchers one after the other.

    On two processors much depends on where the kernel happens to put a launcher, and that lasts as long as it does: the
    median of what each of them gave is told.
    """
    each = [_by_one(max(1, rounds // _LAUNCHERS)) for _ in range(_LAUNCHERS)]
    return [
        replace(rows[0], ratio=statistics.median(row.ratio for row in rows))
        for rows in zip(*each, strict=True)
    ]


def _by_one(rounds: int) -> list[Row]:
    """Compare by one launcher.

    Once with a pause after each, as calls of a model come; and once one upon the other, where what a run does for the
    next one is on its way too.
    """
    with runs() as things:
        first = in_turn({name: things[name] for name in ("plain", "level 1")}, rounds)
        found = [Row(f"level 1, {WHAT}", "subprocess.run", first["level 1"] / first["plain"], 2.5)]
        if "level 2" in things:
            second = in_turn({name: do for name, do in things.items() if name != "level 1"}, rounds)
            found.append(Row(f"level 2, {WHAT}", "subprocess.run", second["level 2"] / second["plain"], None))
            if "bwrap" in second:
                found.append(Row(f"level 2, {WHAT}", "bubblewrap", second["level 2"] / second["bwrap"], 0.95))
        crowded = {name: one_upon_the_other(do, rounds) for name, do in things.items()}
    pairs = [(name, base) for name in crowded for base in ("plain", "bwrap") if name != base in crowded]
    return found + [
        Row(f"{_NAMES[name]}, one upon the other", _NAMES[base], crowded[name] / crowded[base], None)
        for name, base in pairs
        if name.startswith("level")
    ]


def memory_rows(rounds: int) -> list[Row]:
    """Compare a launch from a host process that holds 1 GB with one from a small one."""
    with runs() as things:
        name = "level 1"
        small = in_turn({name: things[name]}, rounds)[name]
        ballast = bytearray(b"x") * (1 << 30)
        large = in_turn({name: things[name]}, rounds)[name]
        del ballast
    return [Row("level 1 with 1 GB in the host process", "level 1", large / small, 1.1)]
