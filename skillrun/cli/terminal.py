"""Terminal: what standard output and standard error are like: colour, width, and where the caller stands."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from skillrun.report.showing import View
from skillrun.report.style import Style

if TYPE_CHECKING:
    from collections.abc import Mapping

    import click

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
