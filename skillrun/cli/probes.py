"""Probes: what `doctor` really tries, each in a run of a throwaway skill, and judges from outside."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import psutil

from skillrun.errors import SkillrunError
from skillrun.launch.result import Termination
from skillrun.report.health import Trial
from skillrun.runner import Runner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from skillrun.cli.interrupts import Interrupts
    from skillrun.host import Host
    from skillrun.launch.result import Result
    from skillrun.sandbox.backend import Probe

MARKER: Final = "SKILLRUN_DOCTOR_MARKER"
"""A variable of the caller that no script may see."""
_TIMEOUT: Final = 10.0  # seconds; a probe takes some hundredths
_OPEN, _BLOCKED = 10, 0

# Exit status 0: blocked, 10: it worked. Anything else is a probe that could not be tried.
_SCRIPTS: Final = {
    "start.sh": "#!/bin/sh\nexec /bin/true\n",
    "scratch.sh": '#!/bin/sh\nprintf x > "$TMPDIR/x" && test -s "$TMPDIR/x"\n',
    "read.sh": '#!/bin/sh\nif IFS= read -r word < "$1"; then exit 10; fi 2>/dev/null\nexit 0\n',
    "list.sh": '#!/bin/sh\nif ls "$1" >/dev/null 2>&1; then exit 10; fi\nexit 0\n',
    "write.sh": '#!/bin/sh\nif printf changed > "$1"; then exit 10; fi 2>/dev/null\nexit 0\n',
    "signal.sh": '#!/bin/sh\nkill -KILL "$1" 2>/dev/null\nexit 0\n',
    "environment.sh": f'#!/bin/sh\nif test -n "${MARKER}"; then exit 10; fi\nexit 0\n',
    "outlive.sh": "#!/bin/sh\nsh -c 'while :; do sleep 1; done' \"$1\" >/dev/null 2>&1 &\necho left\n",
    "connect.py": "import socket, sys\ntry:\n    socket.create_connection(('127.0.0.1', int(sys.argv[1])), 2)\n"
    "except OSError:\n    sys.exit(0)\nsys.exit(10)\n",
}


@dataclass(frozen=True, slots=True)
class Ground:
    """A throwaway skill, an empty workspace, and a file outside both."""

    skill: Path
    workspace: Path
    outside: Path

    @property
    def own(self) -> Path:
        """A file of the skill that nothing depends on."""
        return self.skill / "notes.txt"


@dataclass(frozen=True, slots=True)
class Tried:
    """What the probes found; `first` is the Result of the simplest one, None when it could not be had.

    `probe` is what the launcher found, None where it could not be started.
    """

    trials: tuple[Trial, ...]
    first: Result | None
    probe: Probe | None = None


def try_everything(host: Host, backend: str | None, interrupts: Interrupts) -> Tried:
    """Run every probe. Nothing of it is left afterwards."""
    with _ground(host.temporary) as ground:
        surroundings = replace(
            host,
            # Neither the operator's limits nor the machine's are what is tried here.
            config_file=None,
            machine_file=None,
            environ=MappingProxyType({**host.environ, MARKER: "seen"}),
        )
        runner = Runner(workspace=ground.workspace, ceiling="default", backend=backend, host=surroundings)
        try:
            with interrupts.held():
                runner.launcher.start()
            return replace(_try(runner, ground), probe=runner.launcher.probe())
        finally:
            with interrupts.held():
                runner.close()


def _try(runner: Runner, ground: Ground) -> Tried:
    try:
        first = _run(runner, ground, "start.sh")
    except SkillrunError as wrong:
        return Tried((Trial("start", ok=False, detail=wrong.problem.message),), None)
    start = Trial("start", ok=first.ok, detail=_how(first) if not first.ok else "`/bin/true` ran confined")
    if not first.ok:
        return Tried((start,), first)
    probes: tuple[Callable[[Runner, Ground], Trial], ...] = (
        _scratch, _read, _list, _write, _own_skill, _network, _signal, _environment, _outlive,
    )  # fmt: skip
    return Tried((start, *(_safely(probe, runner, ground) for probe in probes)), first)


def _safely(probe: Callable[[Runner, Ground], Trial], runner: Runner, ground: Ground) -> Trial:
    try:
        return probe(runner, ground)
    except SkillrunError as wrong:
        name = probe.__name__.strip("_").replace("_", "-")
        return Trial(name, ok=False, detail=f"could not be tried: {wrong.problem.message}")


def _scratch(runner: Runner, ground: Ground) -> Trial:
    result = _run(runner, ground, "scratch.sh")
    return Trial(
        "scratch", ok=result.ok, detail="a private folder to write to" if result.ok else _how(result)
    )


def _read(runner: Runner, ground: Ground) -> Trial:
    return _blocked("read", _run(runner, ground, "read.sh", str(ground.outside)), "a file outside")


def _list(runner: Runner, ground: Ground) -> Trial:
    return _blocked("list", _run(runner, ground, "list.sh", str(ground.outside.parent)), "a folder outside")


def _write(runner: Runner, ground: Ground) -> Trial:
    before = ground.outside.read_bytes()
    trial = _blocked("write", _run(runner, ground, "write.sh", str(ground.outside)), "a file outside")
    if ground.outside.read_bytes() != before:
        return Trial("write", ok=False, detail="it WORKED: a file outside was changed")
    return trial


def _own_skill(runner: Runner, ground: Ground) -> Trial:
    return _blocked("own-skill", _run(runner, ground, "write.sh", str(ground.own)), "the skill's own folder")


def _network(runner: Runner, ground: Ground) -> Trial:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0)
        result = _run(runner, ground, "connect.py", str(listener.getsockname()[1]))
        with contextlib.suppress(OSError):
            listener.accept()[0].close()
            return Trial("network", ok=False, detail="it WORKED: a connection arrived")
    return _blocked("network", result, "a service of this machine")


def _signal(runner: Runner, ground: Ground) -> Trial:
    # A process of ours, as the launcher is one; by its number as it is outside, whatever that is inside.
    with subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as victim:
        try:
            result = _run(runner, ground, "signal.sh", str(victim.pid))
            if victim.poll() is not None:
                return Trial("signal", ok=False, detail="it WORKED: a process outside was killed")
        finally:
            victim.kill()
    return _blocked("signal", result, "a process outside")


def _environment(runner: Runner, ground: Ground) -> Trial:
    return _blocked("environment", _run(runner, ground, "environment.sh"), "a variable of the caller")


def _outlive(runner: Runner, ground: Ground) -> Trial:
    marker = f"skillrun-doctor-{secrets.token_hex(8)}"
    result = _run(runner, ground, "outlive.sh", marker)
    if result.stdout.text != "left\n":
        return Trial("outlive", ok=False, detail=f"could not be tried: {_how(result)}")
    if any(marker in (process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])):
        return Trial("outlive", ok=False, detail="it WORKED: a process that was left behind is still there")
    return Trial("outlive", ok=True, detail="blocked: a process that was left behind was ended")


def _blocked(name: str, result: Result, what: str) -> Trial:
    if result.termination is Termination.EXITED and result.exit_code == _BLOCKED:
        return Trial(name, ok=True, detail=f"blocked: {what}")
    if result.termination is Termination.EXITED and result.exit_code == _OPEN:
        return Trial(name, ok=False, detail=f"it WORKED: {what}")
    return Trial(name, ok=False, detail=f"could not be tried: {_how(result)}")


def _run(runner: Runner, ground: Ground, script: str, *arguments: str) -> Result:
    return runner.run(ground.skill, script, arguments, timeout=_TIMEOUT)


def _how(result: Result) -> str:
    if result.error is not None:
        return result.error.message
    told = result.stderr.text.strip().splitlines()
    ending = result.termination.value.replace("_", " ")
    status = "" if result.exit_code is None else f" with {result.exit_code}"
    return f"it {ending}{status}" + (f": {told[-1]}" if told else "")


@contextlib.contextmanager
def _ground(temporary: Path) -> Iterator[Ground]:
    """Make the throwaway folders, and remove them."""
    folder = Path(tempfile.mkdtemp(prefix="skillrun-doctor-", dir=temporary)).resolve()
    try:
        skill, workspace, outside = folder / "probe", folder / "workspace", folder / "outside" / "file"
        (skill / "scripts").mkdir(parents=True)
        workspace.mkdir()
        outside.parent.mkdir()
        outside.write_text("nobody's business\n", encoding="utf-8")
        (skill / "SKILL.md").write_text(
            "---\nname: probe\ndescription: asks for nothing\n---\n", encoding="utf-8"
        )
        for name, text in _SCRIPTS.items():
            first = f"#!{_python()}\n" if name.endswith(".py") else ""
            (skill / "scripts" / name).write_text(first + text, encoding="utf-8")
        ground = Ground(skill, workspace, outside)
        ground.own.write_text("mine\n", encoding="utf-8")
        yield ground
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _python() -> str:
    """Name a Python for an interpreter line: this one, unless its path has blanks."""
    own = os.path.realpath(sys.executable)
    return own if len(own.split()) == 1 else "/usr/bin/env python3"
