"""Terminal: what standard output and standard error are like, where the caller stands, and asking who sits there."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import termios
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

import click

from skillrun.report.showing import View
from skillrun.report.style import Style

if TYPE_CHECKING:
    from collections.abc import Mapping

_WIDE: Final = 100  # columns where nobody says: a file, a pipe
_LEAST: Final = 20


def stdout_view(ctx: click.Context) -> View:
    """Describe standard output."""
    return _view(sys.stdout, ctx)


def stderr_view(ctx: click.Context) -> View:
    """Describe standard error."""
    return _view(sys.stderr, ctx)


def wants_colour(environ: Mapping[str, str], *, said: bool | None, terminal: bool) -> bool:
    """Decide on colour: `--color` if it was `said`, then NO_COLOR, then FORCE_COLOR, then whether it is a terminal.

    Click looks at the last one only. An empty variable counts as absent (no-color.org).
    """
    if said is not None:
        return said
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return environ["FORCE_COLOR"] != "0"
    return terminal and environ.get("TERM") != "dumb"


def here() -> Path | None:
    """Return the caller's current folder, None when it was removed."""
    try:
        return Path.cwd()
    except OSError:
        return None


def _view(stream: TextIO | None, ctx: click.Context) -> View:
    terminal = stream is not None and stream.isatty()
    columns = shutil.get_terminal_size((_WIDE, 24)).columns
    style = Style(colour=wants_colour(os.environ, said=ctx.color, terminal=terminal))
    return View(base=here(), columns=max(columns, _LEAST), style=style)


def somebody_there() -> bool:
    """Whether a person can be asked: questions go to standard error and answers come from standard input."""
    return all(one is not None and one.isatty() for one in (sys.stdin, sys.stderr))


def asked(question: str, *, afresh: bool = False) -> str | None:
    """Ask at the terminal and return the line that is typed, None at its end.

    With `afresh` only what is typed from now on counts: a key that was pressed before the question was there is no
    answer to it.
    """
    if afresh:
        with contextlib.suppress(termios.error, OSError):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    click.echo(f"{question} ", nl=False, err=True)
    try:
        line = sys.stdin.readline()
    except UnicodeDecodeError:
        return "\ufffd"
    if not line:
        click.echo(err=True)
    return line.rstrip("\r\n") if line else None
