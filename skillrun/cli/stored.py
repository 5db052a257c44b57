"""Stored: the file of the conversations, as the commands about calls that wait open it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from skillrun.cli.command import Option
from skillrun.cli.setting import current
from skillrun.conversation.sqlite import SqliteStore
from skillrun.errors import UsageError
from skillrun.host import current_host
from skillrun.permissions.capabilities import inside
from skillrun.problem import error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

NAME: Final = "conversations.db"
"""The usual name of the file, in the state folder."""


def store_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--store`, which the command gets as `store`: a text or None."""
    return click.option(
        "--store", cls=Option, section="Input", metavar="FILE",
        help=f"The file of the conversations.  [default: {NAME} in your state folder]",
    )(function)  # fmt: skip


def place(named: str | None) -> Path:
    """Return the file that `--store` names, physical. UsageError where there is no state folder to have one in."""
    if named is not None:
        if not named or named.endswith("/") or "\0" in named:
            raise UsageError(error("store-place", f"`--store {named}` names no file"))
        # Not `resolve`: it raises for a loop of links.
        return Path(os.path.realpath(current() / named))
    state = current_host().state
    if state is None:
        message = "there is no home to have a state folder in, and the conversations are kept there"
        raise UsageError(error("store-place", message, help="name a file: `--store FILE`"))
    return state.resolve() / NAME


@contextlib.contextmanager
def existing(named: str | None) -> Iterator[SqliteStore | None]:
    """Give the store, None when there is no file: who looks at what waits makes none.

    UsageError for one that was named and is not there.
    """
    path = place(named)
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        if named is not None:
            message = f"there are no conversations in `{path}`: there is no such file"
            raise UsageError(error("store-place", message)) from None
        yield None
        return
    except OSError:
        pass  # opening it says what is wrong
    with _opened(path) as store:
        yield store


@contextlib.contextmanager
def made(named: str | None, *, workspace: Path, roots: Iterable[Path]) -> Iterator[SqliteStore]:
    """Give the store, made when it is not there. UsageError for a file that lies where scripts work.

    A grant elsewhere can't reach it, as it is hidden from every run; these folders are also written by programs that
    nobody confines.
    """
    path = place(named)
    for folder, what in (
        ((workspace, "the workspace"), *((root, "a root of skills") for root in roots)) if named else ()
    ):
        if inside(path, folder.resolve()):
            message = f"the conversations in `{path}` would lie in {what}, where scripts work"
            advice = "name a file elsewhere, or leave `--store` out for the state folder"
            raise UsageError(error("store-place", message, help=advice))
    with _opened(path) as store:
        yield store


def hidden(named: str | None) -> tuple[Path, ...]:
    """Return what no run may see of a store that `--store` names; the state folder is hidden anyway."""
    if named is None:
        return ()
    path = place(named)
    beside = path.parent / f"{path.stem}-files"
    return (path, *(path.with_name(f"{path.name}{end}") for end in ("-wal", "-shm", "-journal")), beside)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(path)
    try:
        yield store
    finally:
        store.close()
