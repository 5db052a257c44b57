"""Store: the files that a check keeps in a project, read strictly and replaced as a whole."""

from __future__ import annotations

import json
import os
import tempfile
from typing import TYPE_CHECKING, Any, Final

from skillrun.errors import ConfigError, UsageError
from skillrun.problem import At, error
from skillrun.skills.disk import read_start

if TYPE_CHECKING:
    from pathlib import Path

SIZE_LIMIT: Final = 64 << 20
"""Bytes of a lock or a baseline: twenty thousand skills with ten files each are a third of it."""


def read_store(path: Path, schema: str, *, at: Path | None = None) -> dict[str, Any] | None:
    """Read a JSON file of ours; None when there is none. ConfigError when it is anything else, a link included.

    A key that is written twice is an error: two readers would see two files.
    """
    where = At(at or path)
    try:
        data, _ = read_start(path, SIZE_LIMIT + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as wrong:
        raise ConfigError(
            error("store-unreadable", f"`{path.name}` can't be read: {wrong.strerror}", at=where)
        ) from None
    if len(data) > SIZE_LIMIT:
        raise ConfigError(error("store-too-large", f"`{path.name}` is too large to be ours", at=where))
    try:
        value = json.loads(data, object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError) as wrong:
        raise ConfigError(
            error("store-damaged", f"`{path.name}` is not JSON as we write it: {wrong}", at=where)
        ) from None
    found = value.get("schema") if isinstance(value, dict) else None
    if not isinstance(value, dict) or found != schema:
        message = f"`{path.name}` has the schema `{found}`, this skillrun reads `{schema}`"
        raise ConfigError(
            error("store-version", message, at=where, help="use the skillrun that wrote it, or write it anew")
        )
    return value


def write_store(path: Path, text: str) -> None:
    """Replace a file as a whole: whoever reads it sees the old or the new one, also when this is killed. UsageError."""
    try:
        descriptor, made = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
                os.fchmod(file.fileno(), 0o644)
            os.replace(made, path)  # noqa: PTH105 - a name from mkstemp
        except BaseException:
            os.unlink(made)  # noqa: PTH108 - as above
            raise
    except OSError as wrong:
        raise UsageError(error("store-unwritable", f"`{path}` can't be written: {wrong.strerror}")) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is written twice")
    return found


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is no number")
