"""Read a script: its description and its interfaces, from its source, without running any of it (law 10)."""

from __future__ import annotations

import ast
import re
import sys
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from skillrun.skills.disk import read_start
from skillrun.tools.infer.argparse_reader import read_argparse
from skillrun.tools.infer.click_reader import read_click
from skillrun.tools.infer.describe import describe
from skillrun.tools.infer.node_reader import read_node
from skillrun.tools.interface import ARGS, STDIN, UNREAD, Interface

if TYPE_CHECKING:
    from pathlib import Path

SOURCE_LIMIT: Final = 1 << 19
"""Bytes of a source that are read; a longer one is not inferred from. The longest of 12,000 public scripts has 400 kB."""
_STDIN = re.compile(
    r"\bstdin\b|\binput\(|\bfileinput\b|/dev/fd/0|\bcat\b(?! *<)(?:\s*\||\s*$)|\bread -r\b|fd ?= ?0|readFileSync\(0"
)

# Up to Python 3.11 the parser looks for each expression of an f-string from its start: 180 kB of them take 11 s.
_SLOW_FORMATS: Final = sys.version_info < (3, 12)
_SMALL: Final = 20_000  # characters of a source in which nothing can take long
_MOST_FORMATTED: Final = (
    200_000_000  # characters of an f-string times its braces, together; about half a second
)
_FORMATTED: Final = re.compile(r"""[fF][rR]?('{3}|"{3}|'|")""")
_REST_OF: Final = {
    "'": re.compile(r"[^\\'\n]*(?:\\.[^\\'\n]*)*", re.DOTALL),
    '"': re.compile(r'[^\\"\n]*(?:\\.[^\\"\n]*)*', re.DOTALL),
    "'" * 3: re.compile(r"[^\\']*(?:(?:\\.|'(?!''))[^\\']*)*", re.DOTALL),
    '"' * 3: re.compile(r'[^\\"]*(?:(?:\\.|"(?!""))[^\\"]*)*', re.DOTALL),
}


@dataclass(frozen=True, slots=True)
class Reading:
    """What a script says: a description, and one interface or one for each sub-command."""

    description: str | None
    interfaces: tuple[Interface, ...]


def read_script(path: Path, family: str) -> Reading:
    """Read a script of an interpreter's family (`python`, `node`, others). What can't be read takes `args` and `stdin`."""
    try:
        data, status = read_start(path, SOURCE_LIMIT)
    except OSError:
        return Reading(None, (UNREAD,))
    if status.st_size > SOURCE_LIMIT or b"\0" in data:
        return Reading(None, (UNREAD,))
    return read_source(data.decode("utf-8-sig", "replace"), family)


def read_source(source: str, family: str) -> Reading:
    """Read a source. Never raises: it may be wrong in any way, or made to break whoever reads it."""
    try:
        tree = _parse(source) if family == "python" else None
        interfaces = _interfaces(source, tree, family)
        text = describe(source, tree)
    except Exception:  # noqa: BLE001 - one script that breaks a reader must not take the other tools with it
        return Reading(None, (UNREAD,))
    stdin = bool(_STDIN.search(source))
    return Reading(text, tuple(_with_rest(one, stdin=stdin) for one in interfaces) or (UNREAD,))


def _parse(source: str) -> ast.Module | None:
    if _SLOW_FORMATS and len(source) > _SMALL and _formatted(source) > _MOST_FORMATTED:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in strings: for the author of the script
            return ast.parse(source)
    except SyntaxError:
        return None


def _formatted(source: str) -> int:
    """Say how much work the f-strings of a source are, or what may be one."""
    work = 0
    for match in _FORMATTED.finditer(source):
        rest = _REST_OF[match[1]].match(source, match.end())
        text = rest[0] if rest is not None else ""
        work += len(text) * text.count("{")
    return work


def _interfaces(source: str, tree: ast.Module | None, family: str) -> tuple[Interface, ...]:
    if family == "node":
        return read_node(source)
    if tree is None:
        return ()
    if "argparse" in source or "ArgumentParser" in source:
        found = read_argparse(tree, source)
        if found:
            return found
    if "click" in source or "typer" in source:
        return read_click(tree, source)
    return ()


def _with_rest(interface: Interface, *, stdin: bool) -> Interface:
    """Add `args` for what could not be read, and `stdin` where the script reads it."""
    taken = {parameter.name for parameter in interface.parameters}
    more = [] if interface.complete or "args" in taken else [ARGS]
    if stdin and "stdin" not in taken:
        more.append(STDIN)
    unique = _unique(interface)
    return replace(unique, parameters=(*unique.parameters, *more))


def _unique(interface: Interface) -> Interface:
    """Give a number to the later ones of parameters with one name."""
    seen: dict[str, int] = {}
    made = []
    for parameter in interface.parameters:
        name = parameter.name
        while name in seen:
            seen[parameter.name] += 1
            name = f"{parameter.name[:58]}_{seen[parameter.name]}"
        seen.setdefault(name, 1)
        made.append(parameter if name == parameter.name else replace(parameter, name=name))
    return replace(interface, parameters=tuple(made))
