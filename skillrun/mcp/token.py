"""Token: what a client of the port must know, made at each start, readable by this user alone."""

from __future__ import annotations

import contextlib
import os
import secrets
from typing import TYPE_CHECKING

from skillrun.errors import UsageError
from skillrun.problem import error

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextlib.contextmanager
def token_file(state: Path | None, port: int) -> Iterator[tuple[str, Path]]:
    """Make a token, write it to a file of its own (0600, its folder 0700), and remove that at the end.

    Raises UsageError where there is no state folder, or where it can't be written.
    """
    if state is None:
        raise UsageError(
            error("mcp-state", "the token would lie in the state folder, and there is no home to have one in")
        )
    token = secrets.token_urlsafe(32)
    folder = state / "mcp"
    path = folder / f"{port}.token"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.chmod(0o700)
        # Under a new name first: a file or link that lies there already is replaced and never written to.
        fresh = folder / f".{secrets.token_hex(8)}"
        descriptor = os.open(
            fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
        )
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{token}\n")
        fresh.replace(path)
    except OSError as wrong:
        message = f"the token can't be written to `{path}`: {wrong.strerror}"
        raise UsageError(error("mcp-state", message)) from None
    try:
        yield token, path
    finally:
        with contextlib.suppress(OSError):
            if path.read_text().strip() == token:  # a later server on this port has its own
                path.unlink()
