"""Confined: an MCP server of somebody else's, run under a ceiling for as long as its client keeps the connection.

The server is the one script of a skill that is made for the session: it asks for all that the ceiling allows and
gets that, through the same pipeline as every script. Its home and cache are the run's scratch folder. Nothing
here needs the SDK: what goes over the wire is passed on as it is.
"""

from __future__ import annotations

import contextlib
import os
import select
import stat
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skillrun.errors import SkillError, UsageError
from skillrun.launch.capture import PassOn
from skillrun.permissions.bounds import absolute, network_of
from skillrun.permissions.flags import Flags
from skillrun.permissions.place import Place
from skillrun.problem import error
from skillrun.running.call import Call
from skillrun.running.listener import Listener
from skillrun.skills.interpreter import find_interpreter
from skillrun.skills.model import Command, Starter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillrun.host import Host
    from skillrun.launch.drive import Drive
    from skillrun.launch.ready import Ready
    from skillrun.launch.result import Result
    from skillrun.permissions.ceiling import Ceiling
    from skillrun.runner import Runner
    from skillrun.sandbox.backend import LaunchPlan

KEY: Final = "mcp-server"
SCRIPT: Final = "serve.sh"
SESSION: Final = 10 * 365 * 86_400.0
"""Seconds that a session may last where the ceiling's file names no deadline: as good as none."""
PATIENCE: Final = 5.0
"""Seconds that a server gets to end once its client has closed the connection (MCP, stdio, shutdown)."""
_HUNG_UP: Final = select.POLLHUP | getattr(
    select, "POLLRDHUP", 0
)  # the latter for a socket that is closed one way
_WRAPPER: Final = '#!/bin/sh\nexec "$@"\n'


def serve_confined(runner: Runner, command: Sequence[str]) -> Result:
    """Run a command with our standard streams passed on, and return what came of it.

    Raises SkillError for a program that is not found, UsageError where it would not be confined.
    """
    with _skill(runner.host) as folder:
        flags = _all_of(runner.layers.base, _place(runner, folder), command[0])
        call = Call(folder, SCRIPT, tuple(command), flags=flags)
        reading, writing = os.pipe2(os.O_CLOEXEC)
        relay = _Relay(writing)
        listener = Listener(
            sinks=(PassOn(1), PassOn(2)), on_plan=_confined, on_drive=relay.start, source=reading
        )
        try:
            return runner.run_call(call, listener)
        finally:
            relay.over()
            os.close(reading)


class _Relay:
    """Passes our standard input on, and ends a server that goes on without a client."""

    def __init__(self, writing: int) -> None:
        self._writing = writing
        self._timer: threading.Timer | None = None
        self._over = False

    def start(self, drive: Drive) -> None:
        """Begin, now that there is something to end."""
        threading.Thread(target=self._work, args=(drive,), name="skillrun-relay", daemon=True).start()

    def over(self) -> None:
        """Leave off: the server has ended."""
        self._over = True
        if self._timer is not None:
            self._timer.cancel()

    def _work(self, drive: Drive) -> None:
        with contextlib.suppress(OSError):
            os.set_blocking(self._writing, False)
            held = b""
            while held or (held := os.read(0, 1 << 16)):
                held = self._written(held, drive)
        os.close(self._writing)
        self._gone(drive)

    def _written(self, held: bytes, drive: Drive) -> bytes:
        """Write what the server takes, and look at the same time whether our client still is there.

        A server that does not read must not keep us from seeing that: it would live for ever.
        """
        waiting = select.poll()
        waiting.register(self._writing, select.POLLOUT)
        if self._timer is None:
            waiting.register(0, _HUNG_UP)
        ready = dict(waiting.poll())
        if 0 in ready:
            self._gone(drive)
        return held[os.write(self._writing, held) :] if self._writing in ready else held

    def _gone(self, drive: Drive) -> None:
        """Have the server ended a little later: its client has gone."""
        if self._over or self._timer is not None:
            return
        self._timer = threading.Timer(PATIENCE, drive.cancel)
        self._timer.daemon = True
        self._timer.start()


@contextlib.contextmanager
def _skill(host: Host) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="skillrun-mcp-", dir=host.temporary) as made:
        folder = Path(made).resolve() / KEY
        (folder / "scripts").mkdir(parents=True)
        manifest = f"---\nname: {KEY}\ndescription: An MCP server of somebody else's.\n---\n"
        (folder / "SKILL.md").write_text(manifest)
        script = folder / "scripts" / SCRIPT
        script.write_text(_WRAPPER)
        script.chmod(stat.S_IRWXU)
        yield folder


def _place(runner: Runner, folder: Path) -> Place:
    host = runner.host
    return Place(
        workspace=runner.workspace, skill=folder, scratch=folder, home=host.home, environ=host.environ
    )


def _all_of(ceiling: Ceiling, place: Place, program: str) -> Flags:
    """Ask for everything that a ceiling allows, and for the program itself."""
    read = [absolute(path, place) for path in (ceiling.fs_read.value if ceiling.fs_read else ())]
    write = [absolute(path, place) for path in (ceiling.fs_write.value if ceiling.fs_write else ())]
    network = network_of(reach for reach, _ in ceiling.network.value) if ceiling.network else None
    hosts = tuple(sorted(map(str, network.endpoints))) if network is not None else ()
    lasting = ceiling.timeout is None or ceiling.timeout.at.preset is not None
    return Flags(
        read=(*read, *_program(program, place)),
        write=tuple(write),
        network=True if network is not None and network.everything else hosts or False,
        env=tuple(name for name, _ in ceiling.env.value) if ceiling.env else (),
        timeout=SESSION if lasting else None,
    )


def _program(program: str, place: Place) -> tuple[str, ...]:
    """Return what a program needs to be started: itself, by the path it is found at, and its prefixes."""
    search = place.environ.get("PATH", "")
    named = os.path.join(os.getcwd(), program) if "/" in program else program  # noqa: PTH109, PTH118 - a text as typed
    try:
        found = find_interpreter(Command(Starter.SHEBANG, named), search=search, home=place.home, refuse=())
    except SkillError as wrong:
        if wrong.problem.rule == "interpreter-is-script":
            return (named,)
        raise
    return (str(found.path), str(found.real), *map(str, found.prefixes))


def _confined(_ready: Ready, plan: LaunchPlan) -> None:
    if plan.backend == "passthrough":
        message = "the server would run without confinement, and this command never does that"
        raise UsageError(error("mcp-unconfined", message, help="say `require: confined` in the ceiling"))
