"""A sandbox-exec that is none: it answers as the real one does, so that launching can be tried anywhere.

It reads the profile with skillrun's own reader and refuses one that does not load (65); SKILLRUN_FAKE in a file beside
it makes it refuse like macOS in other ways. Otherwise it executes the command, unconfined.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main(words: list[str]) -> None:
    """Read the options as sandbox-exec does, and execute."""
    log = Path(__file__).with_suffix(".log")
    with log.open("a", encoding="utf-8") as file:
        file.write(repr(words) + "\n")
    mood = Path(__file__).with_suffix(".mood")
    how = mood.read_text() if mood.exists() else ""
    assert words[0] == "-f"
    text, parameters, rest = Path(words[1]).read_text(), {}, words[2:]
    while rest and rest[0] == "-D":
        name, _, value = rest[1].partition("=")
        parameters[name] = value
        rest = rest[2:]
    if how == "nested":
        sys.exit(_say("sandbox-exec: sandbox_apply: Operation not permitted", 71))
    if how == "abort":
        os.abort()
    sys.path.insert(0, str(Path(__file__).with_suffix(".path").read_text()))
    from skillrun.sandbox.seatbelt.parse import parse

    profile = parse(text if how != "broken" else text + "(allow setenv)", parameters)
    if not profile.loads:
        sys.exit(_say(f"sandbox-exec: {profile.faults[0].message} at <input string>, line 1", 65))
    try:
        os.execvp(rest[0], rest)
    except OSError as problem:
        sys.exit(_say(f"sandbox-exec: execvp() of '{rest[0]}' failed: {problem.strerror}", 71))


def _say(text: str, code: int) -> int:
    sys.stderr.write(text + "\n")
    return code


main(sys.argv[1:])
