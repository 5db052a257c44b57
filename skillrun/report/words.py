"""Words: permissions and places in the words that every renderer for people uses."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from skillrun.permissions.grant import Capability
from skillrun.report.escape import escape

if TYPE_CHECKING:
    from pathlib import Path

    from skillrun.permissions.grant import Value
    from skillrun.problem import At

_VERBS: Final = {
    Capability.FS_READ: "read",
    Capability.FS_WRITE: "write",
    Capability.NETWORK: "network",
    Capability.TIMEOUT: "timeout",
    Capability.TRUST: "trust",
    Capability.ENV: "env",
    Capability.LIMITS: "limit",
}
_UNITS: Final = ("KiB", "MiB", "GiB", "TiB")
_STEP: Final = 1024
_IN_BYTES: Final = frozenset({"memory", "file_size", "output"})


def permission(capability: Capability, value: Value) -> str:
    """Write one permission: `read ./data`, `network`, `timeout 30 s`, `limit memory 2 GiB`."""
    if capability is Capability.NETWORK and isinstance(value, bool):
        return "network" if value else "no network"
    return f"{_VERBS[capability]} {amount(capability, value)}"


def amount(capability: Capability, value: Value) -> str:
    """Write the value of a permission."""
    if capability is Capability.TIMEOUT and isinstance(value, int | float):
        return f"{value:g} s"
    if capability is Capability.LIMITS:
        name, _, number = str(value).partition("=")
        return f"{escape(name)} {size(float(number)) if name in _IN_BYTES else number}"
    return "nothing" if value is None else escape(str(value))


def size(number: float) -> str:
    """Write bytes in the largest unit that divides them."""
    unit = "bytes"
    for larger in _UNITS:
        if number < _STEP or number % _STEP:
            break
        number, unit = number / _STEP, larger
    return f"{number:g} {unit}"


def near(path: Path | str, base: Path | None) -> str:
    """Write a path, from `base` where it lies below it."""
    text, top = os.fspath(path), None if base is None else os.fspath(base)
    if top is not None and top != "/" and text.startswith(f"{top}/"):
        text = text[len(top) + 1 :]
    return escape(text)


def spot(at: At, base: Path | None) -> str:
    """Write a place: `file:line:column`, `preset default`, `--read`."""
    if at.path is None:
        return escape(str(at))
    return ":".join([near(at.path, base), *(str(n) for n in (at.line, at.column) if n is not None)])
