"""Read: the text of one script, by the reader of its language."""

from __future__ import annotations

import codecs
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from skillrun.check.static import node, python, shell
from skillrun.check.static.python_values import SKILL
from skillrun.check.static.use import Fault, Reading
from skillrun.skills.disk import read_start
from skillrun.skills.interpreter import family_of

if TYPE_CHECKING:
    from skillrun.skills.model import Script

SIZE_LIMIT: Final = 1 << 20
"""Bytes of a script that are read. The largest one known that people wrote has 400 KB."""
_NODE: Final = frozenset({"node", "bun", "deno", "tsx", "ts-node"})
_SHELL: Final = frozenset({"sh", "bash", "zsh", "dash", "ksh", "ash"})


def language(script: Script) -> str | None:
    """Return `python`, `shell`, `node`, or None for what nothing here reads."""
    command = script.command
    if command is None or not command.program:
        return None
    words = [command.program.rpartition("/")[2], *(arg.rpartition("/")[2] for arg in command.args)]
    family = family_of(words[0])
    if family == "python" or any(word.startswith("python") for word in words) or words[0] in {"uv", "uvx"}:
        return None if "python2" in words else "python"
    if words[0] in _SHELL:
        return "shell"
    return "node" if any(word in _NODE for word in words) else None


def read(script: Script) -> Reading:
    """Read a script within the size cap. Whatever is in it becomes uses or a fault."""
    kind = language(script)
    if kind is None:
        return Reading(None)
    try:
        source, _ = read_start(script.path, SIZE_LIMIT + 1)
    except OSError as wrong:
        return Reading(kind, fault=Fault(f"it can't be read: {wrong.strerror}"))
    if len(source) > SIZE_LIMIT:
        return Reading(kind, fault=Fault(f"it is larger than {SIZE_LIMIT >> 20} MiB, so it was not read"))
    found = _read(kind, source, f"{SKILL}/scripts/{script.name}")
    return replace(found, text=text_of(source))


def text_of(source: bytes) -> str:
    """Decode a script; a byte that is no character becomes a replacement, never an error."""
    return source.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")


def _read(kind: str, source: bytes, file: str) -> Reading:
    if kind == "python":
        return python.read(source, file=file)
    text = text_of(source)
    if "\0" in text:
        return Reading(kind, fault=Fault("it holds NUL characters, so it is no text"))
    return shell.read(text) if kind == "shell" else node.read(text)
