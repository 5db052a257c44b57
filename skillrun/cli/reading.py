"""Reading: profile files and `-D` from the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from skillrun.cli.command import Option
from skillrun.cli.setting import current
from skillrun.errors import UsageError
from skillrun.problem import error

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_MOST: Final = 16 << 20  # bytes of a profile that are read; the reader itself takes less

define = click.option(
    "-D",
    "definitions",
    cls=Option,
    section="Input",
    multiple=True,
    metavar="NAME=VALUE",
    help="The value of a parameter, as sandbox-exec takes it; may be repeated.",
)


def profile_text(name: str) -> tuple[Path, str]:
    """Read a profile. Raises UsageError when there is none. Bytes that are no UTF-8 stay what they are."""
    path = current() / name
    try:
        with path.open("rb") as file:
            data = file.read(_MOST + 1)
    except OSError as problem:
        message = f"`{name}` can't be read: {problem.strerror}"
        raise UsageError(error("profile-unreadable", message)) from problem
    if len(data) > _MOST:
        raise UsageError(
            error("profile-unreadable", f"`{name}` has over {_MOST >> 20} MiB and is no profile")
        )
    return path, data.decode("utf-8", "surrogateescape")


def defined(definitions: Sequence[str]) -> dict[str, str]:
    """Read `NAME=VALUE`, the first `=` between them. Raises UsageError."""
    values = {}
    for text in definitions:
        name, equals, value = text.partition("=")
        if not equals or not name:
            message = f"`-D {text}` names no parameter and value"
            raise UsageError(error("usage", message, help="write `-D NAME=VALUE`"))
        values[name] = value
    return values
