"""What a command line in git's settings names: programs and scripts by their paths in a work tree.

No shell is asked. Words are taken as a shell would see them and, because a value may hold a whole script,
also cut at every character that means something to a shell; what either reading finds counts.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from typing import TYPE_CHECKING, Final

from skillrun.permissions.closed import may_be
from skillrun.sandbox.walk import is_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

LONGEST: Final = 4095  # of a path, as Linux takes it (PATH_MAX without its NUL)
_CUT = re.compile(r"[\s\"'`$(){};|&<>=!:,]+")
_HOME = re.compile(r"\$HOME\b|\$\{HOME\}")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,15}://[^\s\"']*")
_MOST_QUOTED: Final = (
    8_192  # characters of a line whose quotes are minded; shlex takes time with their square
)
_MOST_FOLDERS: Final = 4  # of a line that words are tried in


def paths_in(
    command: str, tops: Sequence[Path], git: Path | None, home: Path | None, *, may: Callable[[str], bool]
) -> Iterator[str]:
    """Give what a command line names: files, and paths where one could be made.

    Words are tried in the `tops`, where git starts what it runs, and in the folders that the line names
    (`cd tools && ./x`). One that starts with a slash is also tried there and in the folder of the
    repository, because it may be the rest of `$(git rev-parse --show-toplevel)/x`. `may` is asked before
    each path is looked at.
    """
    words = _words(command)
    places = [os.fspath(top) for top in tops]
    after_a_variable: list[str] = []
    if not {"$", "`"}.isdisjoint(command):
        after_a_variable = [*places, *(os.fspath(one) for one in (git, home) if one is not None)]
    entered: list[str] = []
    for word, first in words:
        if first and "/" not in word:
            continue  # a program that is looked for in PATH, or a builtin
        if word.startswith("/"):
            candidates = [word, *(place + word for place in after_a_variable)]
        else:
            candidates = _relative(word, [*places, *entered], home)
        for candidate in candidates:
            if not may(candidate):
                return
            if is_folder(candidate):
                yield from _in_folder(candidate, sets_path="PATH=" in command)
                if len(entered) < _MOST_FOLDERS:
                    entered.append(candidate)
            elif os.path.lexists(candidate) or ("/" in word and _could_be(candidate, places)):
                yield candidate


def _relative(word: str, places: Sequence[str], home: Path | None) -> list[str]:
    """Give the paths that a word without a slash at its start may mean."""
    if word.startswith("~/"):
        return [] if home is None else [f"{home}{word[1:]}"]
    return [f"{place}/{word}" for place in places]


def _words(command: str) -> list[tuple[str, bool]]:
    """Give the words of a line, each once, with whether it is the very first."""
    line = _HOME.sub("~", _URL.sub(" ", command.lstrip("! \t")))
    whole = line.split()
    if len(line) <= _MOST_QUOTED and not {"'", '"', "\\"}.isdisjoint(line):
        with contextlib.suppress(ValueError):  # a quote that does not end
            whole = shlex.split(line)
    words: dict[str, bool] = {}
    for reading in (whole, [word for word in _CUT.split(line) if word]):
        for place, word in enumerate(reading):
            if len(word) <= LONGEST and not word.startswith("-") and word.strip("./"):
                words[word] = words.get(word, True) and place == 0
    return list(words.items())


def _could_be(candidate: str, places: Sequence[str]) -> bool:
    """Tell whether a path that is not there lies in a work tree, where a script could make it."""
    normal = os.path.normpath(candidate)
    return any(normal.startswith(f"{place.rstrip('/')}/") for place in places) and "*" not in candidate


def _in_folder(folder: str, *, sets_path: bool) -> Iterator[str]:
    """Give what of a folder is run: all of it where programs are looked for in it, else what Python starts.

    A folder as such is more often what a command works on (`rm -rf build/`), and stays writable.
    """
    if sets_path:
        yield folder
    elif may_be(f"{folder}/__main__.py"):
        yield f"{folder}/__main__.py"
