"""System log: what macOS's log says that the sandbox stopped, for runs that were asked to tell (`--backend seatbelt-log`).

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

from skillrun.launch.denials import KERNEL, NETWORK, Suspect

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

LOG: Final = "/usr/bin/log"
_TIMEOUT: Final = 15.0  # seconds
_FLUSHED: Final = 0.2  # seconds until what the kernel just said can be read
_MOST: Final = 100  # denials of one run
_LINE: Final = re.compile(
    r"Sandbox: .*?\((?P<pid>\d+)\) deny\(\d+\) (?P<operation>[a-z*-]+)(?: (?P<target>.*))?", re.DOTALL
)
_WORDS: Final = {
    "file-read": "read",
    "process-exec": "read",
    "file-write": "write",
    "network-outbound": NETWORK,
}
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


def suspects(found: Iterable[Sequence[str]]) -> Iterator[Suspect]:
    """Give what was denied in the words of a result; what no flag could allow keeps the log's own."""
    for operation, target in found:
        path = Path(target) if target.startswith("/") else None
        known = next((word for start, word in _WORDS.items() if operation.startswith(start)), None)
        if known == NETWORK:
            yield Suspect(NETWORK, None, KERNEL)
        elif known is not None and path is not None:
            yield Suspect(known, path, KERNEL)
        else:
            yield Suspect(operation, path, KERNEL)
