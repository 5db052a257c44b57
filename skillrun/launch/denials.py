"""Denials: what macOS's log says that the sandbox stopped, for runs that were asked to tell (`--backend seatbelt-log`).

The log is read once, after the run. The kernel leaves out repetitions, so a denial is listed and never counted; who
may not read the log gets none. Lines are matched by the process ids that the watch has seen, so a process that it
missed is missing here too.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skillrun.launch.result import Denial

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

LOG: Final = "/usr/bin/log"
_TIMEOUT: Final = 15.0  # seconds
_FLUSHED: Final = 0.2  # seconds until what the kernel just said can be read
_MOST: Final = 100  # denials of one run
_LINE: Final = re.compile(
    r"Sandbox: .*?\((?P<pid>\d+)\) deny\(\d+\) (?P<operation>[a-z*-]+)(?: (?P<target>.*))?", re.DOTALL
)
_PREDICATE: Final = 'sender == "Sandbox" AND eventMessage CONTAINS " deny("'


def read(began: float, pids: Collection[int], *, program: str = LOG) -> list[tuple[str, str]]:
    """Return operations and targets that were denied to these processes since a time; none when the log can't be read."""
    time.sleep(_FLUSHED)
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(began - 1))
    command = [program, "show", "--style", "ndjson", "--start", since, "--predicate", _PREDICATE]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_TIMEOUT,
            env={},
            cwd="/",
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return list(parse(done.stdout.decode("utf-8", "replace").splitlines(), pids))


def parse(lines: Iterable[str], pids: Collection[int]) -> Iterator[tuple[str, str]]:
    """Find the denials of processes in lines of the log, each once."""
    told: set[tuple[str, str]] = set()
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        message = entry.get("eventMessage") if isinstance(entry, dict) else None
        found = _LINE.search(message) if isinstance(message, str) else None
        if found is None or int(found["pid"]) not in pids:
            continue
        denial = (found["operation"], found["target"] or "")
        if denial not in told and len(told) < _MOST:
            told.add(denial)
            yield denial


def denials(found: Iterable[Sequence[str]]) -> tuple[Denial, ...]:
    """Make the denials of a result."""
    return tuple(_denial(operation, target) for operation, target in found)


def _denial(operation: str, target: str) -> Denial:
    path = Path(target) if target.startswith("/") else None
    if operation.startswith("network-outbound"):
        return Denial(operation, path, "kernel", "--network")
    flags = {"file-read": "--read", "process-exec": "--read", "file-write": "--write"}
    flag = next((flag for start, flag in flags.items() if operation.startswith(start)), None)
    return Denial(operation, path, "kernel", f"{flag} {target}" if flag and path else None)
