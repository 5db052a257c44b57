"""What the soak test measures: an owner with nothing in it but skillrun. MODE, RUNS and a folder; prints a JSON line.

It is a program of its own, so that what grows in it is skillrun's.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "kill"))
from adversaries import BY_NAME
from arena import Arena, children, launcher_pid, scratches, set_grace, state, warden_pid

from skillrun import Call, Runner, Termination

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun import Reply

AT_ONCE = 16


def resident(pid: int) -> int:
    """Return the resident bytes of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def look(arena: Arena, runner: Runner) -> dict[str, int]:
    """Count everything that could grow, with nothing under way."""
    gc.collect()
    launcher, warden = launcher_pid(runner), warden_pid(runner)
    parts = {"owner": os.getpid(), "launcher": launcher, "warden": warden}
    found = {
        f"descriptors of {name}": len(list(Path(f"/proc/{pid}/fd").iterdir())) for name, pid in parts.items()
    }
    found |= {f"memory of {name}": resident(pid) for name, pid in parts.items()}
    found["threads"] = threading.active_count()
    found["processes"] = len([pid for pid in arena.everything() if pid not in children(launcher)])
    found["zombies"] = sum(state(pid) == "Z" for pid in (*children(launcher), *children(warden)))
    found["scratch folders"] = len(scratches(runner))
    found["things in the temporary folder"] = len(list(arena.temporary.rglob("*")))
    return found


def settle(runner: Runner) -> None:
    """Have the launcher hold what it holds for the next run: how much that is depends on how the last ones came."""
    for _ in range(3):
        time.sleep(0.1)
        assert runner.run("plain", arguments=("1",)).ok
    time.sleep(0.2)


def write_skills(arena: Arena) -> None:
    """Write one skill for each kind of run."""
    arena.script("#!/bin/sh\necho $1\n", skill="plain", name="go.sh")
    arena.script("#!/bin/sh\n(sleep 50 &)\nhead -c 100000 /dev/zero\n", skill="leaves", name="go.sh")
    arena.script(
        "#!/bin/sh\nmkdir -p $TMPDIR/a/b/c; echo x > $TMPDIR/a/b/c/d; exit 3\n", skill="fails", name="go.sh"
    )
    arena.script("#!/bin/sh\nsleep 50 & exec sleep 50\n", skill="slow", name="go.sh")
    arena.script("#!/no/such/interpreter\n", skill="nothing", name="go")
    arena.script(BY_NAME["ignores-term"].source, skill="deaf")


def calls(count: int) -> Iterator[Call]:
    """Give runs of every kind, mostly plain ones."""
    for number in range(count):
        kind = number % 20
        if kind == 3:
            yield Call("leaves", timeout=60)
        elif kind == 7:
            yield Call("slow", timeout=0.05)
        elif kind == 11:
            yield Call("nothing", timeout=60)
        elif kind == 13:
            yield Call("deaf", timeout=0.3)
        elif kind == 17:
            yield Call("nobody")
        elif kind in {5, 15}:
            yield Call("fails", timeout=60)
        else:
            yield Call("plain", arguments=(str(number),), timeout=60)


def right(reply: Reply) -> bool:
    """Whether a reply is what its call has to bring."""
    skill, result = reply.call.skill, reply.result
    if skill in {"nobody", "nothing"}:
        return reply.error is not None
    if result is None or result.violations:
        return False
    if skill == "plain":
        return result.ok and result.stdout.text == reply.call.arguments[0] + "\n"
    if skill == "leaves":
        return result.ok and result.stdout.bytes == 100_000 and result.leftovers >= 1
    if skill == "fails":
        return result.exit_code == 3
    return result.termination is Termination.TIMED_OUT


def main(mode: str, runs: int, folder: str) -> None:
    """Run them in parts, and say after the last one what was seen after each."""
    arena = Arena(Path(folder))
    set_grace(pytest.MonkeyPatch(), 0.1)
    write_skills(arena)
    wrong: list[str] = []
    looks: list[dict[str, int]] = []
    parts = 10 if runs >= 1_000 else 2
    began = time.monotonic()
    with arena.runner(mode, at_once=AT_ONCE) as runner:
        for part in range(parts):
            replies = runner.replies(calls(runs // parts), limit=AT_ONCE)
            wrong += [repr(reply)[:2000] for reply in replies if not right(reply)]
            settle(runner)
            looks.append(look(arena, runner))
            if runs >= 1_000:
                took = time.monotonic() - began
                print(
                    json.dumps({"runs": (part + 1) * runs // parts, "s": round(took, 1), **looks[-1]}),
                    file=sys.stderr,
                )
    arena.assert_clean()
    print(json.dumps({"wrong": wrong, "looks": looks}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
