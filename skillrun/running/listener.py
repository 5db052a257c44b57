"""Listener: who is told what while a run is under way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skillrun.launch.capture import Keep

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from skillrun.launch.capture import Sink
    from skillrun.launch.drive import Drive
    from skillrun.launch.ready import Ready
    from skillrun.sandbox.backend import LaunchPlan

    OnOutput = Callable[[str, bytes], object]
    """Takes `stdout` or `stderr` and bytes as they come."""


@dataclass(frozen=True, slots=True)
class Listener:
    """Sinks that take both streams, and calls for each step; None is told nothing.

    `on_plan` comes before the start, `on_drive` with what can cancel the run, `on_start` with its process id.
    `events` takes what the script writes to its descriptor 3. `collect` is given the folder that the script was
    told to put files into, once everything of the run is dead and before it is removed. `source` is a descriptor;
    what comes from it goes to the script's stdin as it comes. `told` gives the socket of a traced run.
    """

    sinks: tuple[Sink, Sink] | None = None
    on_output: OnOutput | None = None
    on_plan: Callable[[Ready, LaunchPlan], None] | None = None
    on_drive: Callable[[Drive], None] | None = None
    on_start: Callable[[int], None] | None = None
    events: Sink | None = None
    collect: Callable[[Path], None] | None = None
    source: int | None = None
    told: Callable[[], int] | None = None

    def outlets(self, keep: int) -> tuple[Sink, Sink]:
        """Give the sinks of a run that may keep so many bytes of each stream."""
        if self.sinks is not None:
            return self.sinks
        if self.on_output is None:
            return Keep(keep), Keep(keep)
        return Tell("stdout", keep, self.on_output), Tell("stderr", keep, self.on_output)


class Tell(Keep):
    """Keeps what `Keep` does and tells of every chunk as it comes.

    A callback that raises ends the run, and what it raised comes out of the call. OSError says that
    nobody reads any more: the script learns it as in any pipe.
    """

    def __init__(self, stream: str, limit: int, told: OnOutput) -> None:
        super().__init__(limit)
        self._stream = stream
        self._told = told

    def feed(self, chunk: bytes) -> None:
        """Keep it and tell; the end of the stream, which is empty, is not told."""
        super().feed(chunk)
        if chunk:
            self._told(self._stream, chunk)


NOBODY: Final = Listener()
