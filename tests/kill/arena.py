"""The arena: one workspace, one skill, one temporary folder, and an oracle that looks from outside.

Every path carries a token that no other test has. Scripts inherit it in their environment (SKILL_DIR) and
most carry it in their arguments; the warden and the launcher carry it in theirs (the scratch folder).
"""

from __future__ import annotations

import contextlib
import gc
import os
import secrets
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import skillrun.sandbox.wire
from skillrun import Host, Runner
from skillrun.sandbox.environment import OUTPUT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from skillrun import Result

MODES = ("confined", "passthrough")  # the best level of this host, and none
LEVELS = ("level-1", "level-2", "passthrough")  # a locked group, a namespace's init, a supervisor
PYTHON = "/usr/bin/python3"
_MANIFEST = """---
name: {name}
description: an adversary
fs_read: ["${{workspace}}"]
fs_write: ["${{workspace}}/out"]
timeout: 100
---
"""
_CEILING = """sandbox:
  fs_read: ["${workspace}"]
  fs_write: ["${workspace}/out"]
  timeout: 100
  require: none
"""


def eventually(check: Callable[[], bool], seconds: float = 2.0) -> bool:
    """Tell whether something becomes true in time."""
    last = time.monotonic() + seconds
    while not check():
        if time.monotonic() > last:
            return False
        time.sleep(0.005)
    return True


def marked(token: str) -> list[int]:
    """List the living processes that carry a token in their arguments or environment."""
    found = []
    word = token.encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            for source in ("cmdline", "environ"):
                with contextlib.suppress(OSError):
                    if word in (entry / source).read_bytes():
                        found.append(int(entry.name))
                        break
    return found


def state(pid: int) -> str:
    """Return the state letter of a process, empty when there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[0]


def children(pid: int) -> list[int]:
    """List the children of a process, the dead and unreaped ones included."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError):
            found += map(int, (task / "children").read_text().split())
    return found


def zombies() -> list[int]:
    """List the dead, unreaped children of this process."""
    return [pid for pid in children(os.getpid()) if state(pid) == "Z"]


def describe(pids: Iterable[int]) -> str:
    """Say what processes are, for a failure message."""
    lines = []
    for pid in pids:
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            lines.append(f"{pid} {state(pid)} {words[:160]}")
    return "; ".join(lines)


@dataclass(frozen=True, slots=True)
class Holdings:
    """What this process holds that a library could leak."""

    descriptors: dict[int, str]
    threads: int
    zombies: frozenset[int] = frozenset()  # another suite's, such as a worker that a control rightly killed

    @classmethod
    def now(cls) -> Holdings:
        """Count."""
        gc.collect()
        found = {}
        for entry in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(OSError):
                target = str(entry.readlink())
                if not target.endswith("/fd"):
                    found[int(entry.name)] = target
        return cls(found, threading.active_count(), frozenset(zombies()))

    def leaked(self) -> dict[int, str]:
        """Give the descriptors that are open now and were not then."""
        now = Holdings.now().descriptors
        return {number: target for number, target in now.items() if self.descriptors.get(number) != target}


@dataclass(slots=True)
class Arena:
    """See the module. `grace` is how long a run of this arena may take to end politely."""

    root: Path
    token: str = field(default_factory=lambda: "tok" + secrets.token_hex(8))
    holdings: Holdings = field(default_factory=Holdings.now)

    def __post_init__(self) -> None:
        """Make the folders."""
        for folder in (self.out, self.temporary, self.skills):
            folder.mkdir(parents=True)
        self.ceiling.write_text(_CEILING)

    @property
    def workspace(self) -> Path:
        """The folder runs work in."""
        return self.root / "work"

    @property
    def out(self) -> Path:
        """The folder scripts may write."""
        return self.workspace / "out"

    @property
    def temporary(self) -> Path:
        """The temporary folder given to skillrun; nobody else writes there."""
        return self.root / f"tmp-{self.token}"

    @property
    def skills(self) -> Path:
        """The skill root."""
        return self.root / f"skills-{self.token}"

    @property
    def ceiling(self) -> Path:
        """The operator's file."""
        return self.root / "ceiling.yaml"

    def script(self, source: str, *, skill: str = "demo", name: str = "go.py") -> Path:
        """Write a skill with one script and return the script; without a first line it is Python."""
        folder = self.skills / skill
        (folder / "scripts").mkdir(parents=True, exist_ok=True)
        (folder / "SKILL.md").write_text(_MANIFEST.format(name=skill))
        path = folder / "scripts" / name
        path.write_text(source if source.startswith("#!") else f"#!{PYTHON} -IS\n{source}")
        path.chmod(0o755)
        return path

    def runner(self, mode: str = "confined", **options: Any) -> Runner:
        """Make a runner for one of MODES or LEVELS; skip the test where this host has no such level."""
        chosen = {
            "passthrough": {"backend": "passthrough", "require": "none"},
            "level-1": {"backend": "linux-1", "require": "confined"},
            "level-2": {"backend": "linux-2", "require": "confined"},
            "confined": {"require": "confined"},
        }[mode]
        host = options.pop("host", None) or Host(temporary=self.temporary)
        runner = Runner(
            workspace=self.workspace,
            skills=[self.skills],
            ceiling=self.ceiling,
            host=host,
            **{**chosen, **options},
        )
        if mode == "level-2" and not (probe := runner.launcher.probe()).level2:
            runner.close()
            if "linux-2" in os.environ.get("SKILLRUN_REQUIRE_BACKENDS", "").split(","):
                pytest.fail(f"level 2 is required, and does not work here: {probe.level2_failure}")
            pytest.skip(f"no level 2 on this host: {probe.level2_failure}")
        return runner

    def survivors(self) -> list[int]:
        """List what is alive of any script of this arena."""
        return [pid for pid in marked(self.skills.name) if state(pid) not in {"Z", "X", ""}]

    def everything(self) -> list[int]:
        """List what is alive of this arena, wardens and launchers included."""
        return [
            pid
            for pid in {*marked(self.skills.name), *marked(self.temporary.name)}
            if state(pid) not in {"Z", "X", ""}
        ]

    def assert_dead(self, *, why: str = "") -> None:
        """No survivor: looked for thrice, since one look at a table that changes can miss one."""
        size = self.beats()
        for _ in range(3):
            left = self.survivors()
            assert not left, f"{why} alive after the result: {describe(left)}"
            time.sleep(0.01)
        assert self.beats() == size, f"{why} something still writes its heartbeat"

    def assert_clean(self) -> None:
        """After the runner is closed: no process, zombie, folder, descriptor or thread of ours is left."""
        self.assert_dead()
        assert eventually(lambda: not self.everything()), describe(self.everything())
        unreaped = set(zombies()) - self.holdings.zombies
        assert not unreaped, f"unreaped children: {unreaped}"
        assert not list(self.temporary.iterdir()), list(self.temporary.iterdir())
        assert not self.holdings.leaked(), f"descriptors left open: {self.holdings.leaked()}"
        assert threading.active_count() <= self.holdings.threads, threading.enumerate()

    def beats(self) -> int:
        """Return how many heartbeats there were; a chain too quick for /proc is seen by them."""
        beat = self.out / "beat"
        return beat.stat().st_size if beat.exists() else 0

    def clear(self) -> None:
        """End whatever is left, so that no test can disturb another."""
        (self.out / "stop").touch()
        last = time.monotonic() + 10
        while (left := self.everything()) and time.monotonic() < last:
            for pid in left:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            for pid in children(os.getpid()):  # a child cloned with CLONE_PARENT is ours
                if pid in left:
                    with contextlib.suppress(ChildProcessError):
                        os.waitpid(pid, 0)
            time.sleep(0.01)


@contextlib.contextmanager
def plain(arena: Arena, script: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a script as a program without skillrun would: a child, pipes, nothing else."""
    environ = {
        "SKILL_DIR": str(script.parent.parent),
        "WORKSPACE": str(arena.workspace),
        "PATH": "/usr/bin:/bin",
    }
    process = subprocess.Popen(
        [str(script)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=arena.workspace,
        env=environ,
    )
    assert process.stdout is not None
    try:
        yield process
    finally:
        process.kill()
        arena.clear()
        process.wait()
        process.stdout.close()


class Watch:
    """A sink that keeps little, counts all, and says when the script is ready."""

    def __init__(self) -> None:
        self.seen = 0
        self.head = b""
        self.ready_event = threading.Event()

    def ready(self) -> int | None:
        """Never wait."""
        return None

    def room(self) -> int:
        """Take a pipe at once."""
        return 1 << 16

    def feed(self, chunk: bytes) -> None:
        """Note what came."""
        self.seen += len(chunk)
        self.head = (self.head + chunk)[:4096]
        if b"ready" in self.head:
            self.ready_event.set()

    def captured(self) -> Any:
        """Give it back as a runner expects it."""
        from skillrun.launch.capture import Captured

        return Captured(self.head.decode(errors="replace"), self.seen, truncated=self.seen > len(self.head))


class Faults:
    """Many small cases in one test: each is tried, and all that failed are named at the end."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}

    @contextlib.contextmanager
    def of(self, case: object) -> Iterator[None]:
        """Note what goes wrong in a case, under its name."""
        try:
            yield
        except Exception as problem:  # noqa: BLE001 - AssertionError and all others are what is collected
            words = " ".join(str(problem).split())
            self.found[repr(case)[:70]] = f"{type(problem).__name__}: {words[:160]}"

    def assert_none(self) -> None:
        """Fail with every fault."""
        assert not self.found, "".join(f"\n  {case}: {fault}" for case, fault in self.found.items())


class Background:
    """A run in a thread of its own: `result` waits for it and fails when it does not come."""

    def __init__(self, runner: Runner, script: str = "go.py", skill: str = "demo", **options: Any) -> None:
        self.watch = Watch()
        self._result: Result | None = None
        self._error: BaseException | None = None
        self._runner = runner

        def work() -> None:
            try:
                self._result = runner.run(skill, script, sinks=(self.watch, Watch()), **options)
            except BaseException as problem:  # noqa: BLE001 - handed to the test's own thread
                self._error = problem

        self.thread = threading.Thread(target=work, daemon=True)
        self.thread.start()

    def await_ready(self) -> None:
        """Wait until the script has made its preparations."""
        assert self.watch.ready_event.wait(10), f"the script did not start: {self._error or self._result}"

    def result(self, within: float) -> Result:
        """Return the result, which must come in time."""
        self.thread.join(within)
        assert not self.thread.is_alive(), f"the call is stuck after {within} s"
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return self._result


def launcher_pid(runner: Runner) -> int:
    """Return the launcher's process id."""
    pair = runner.launcher._pair
    assert pair is not None
    return int(pair.hello["pid"])


def warden_pid(runner: Runner) -> int:
    """Return the warden's process id."""
    pair = runner.launcher._pair
    assert pair is not None
    return pair.warden.pid


def spare_pids(runner: Runner) -> list[int]:
    """Return the launcher's children; with no run under way those are idle spares, a second one for a world built ahead."""
    return children(launcher_pid(runner))


def scratches(runner: Runner) -> list[Path]:
    """List the scratch folders of runs that are still there; `bin` is the launcher's own, and two folders are made ahead."""
    root = runner.launcher.scratch_root
    found = [entry for entry in root.iterdir() if entry.name not in {"bin", "runs"}]
    ahead = [path for path in runner._scratches.ahead if list(path.rglob("*")) == [path / OUTPUT]]
    assert len(ahead) <= 2
    runs = (root / "runs").iterdir() if (root / "runs").is_dir() else ()
    return found + [path for path in runs if path not in ahead]


def set_grace(monkeypatch: Any, seconds: float) -> None:
    """Shorten the polite time, which would be most of what a kill test takes."""
    monkeypatch.setattr(skillrun.sandbox.wire, "GRACE", seconds)
