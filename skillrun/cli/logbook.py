"""Logbook: `--log`, which writes down every run, and where its file lies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from skillrun.cli.command import Option
from skillrun.errors import UsageError
from skillrun.problem import error

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from skillrun.host import Host
    from skillrun.report.records import Records

NAME: Final = "runs.jsonl"
"""The usual name of a log, in the state folder."""


def log_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--log`, which the command gets as `log`: a text or None."""
    return click.option(
        "--log", cls=Option, metavar="FILE",
        help=f"Write down every run in FILE, one line of JSON each, without arguments, output and secrets; a bare "
        f"name, such as {NAME}, lies in your state folder.",
    )(function)  # fmt: skip


def place(named: str, host: Host, here: Path) -> Path:
    """Return the file that `--log` names, physical. UsageError for a bare name where there is no state folder."""
    if "/" in named or named in {"", ".", ".."}:
        return (here / named).resolve()
    if host.state is None:
        message = f"`{named}` would lie in the state folder, and there is no home to have one in"
        raise UsageError(error("log-place", message, help="name a file with its folder"))
    return host.state.resolve() / named


def records(named: str | None, host: Host, here: Path) -> Records | None:
    """Return the records that `--log` names, not opened yet."""
    if named is None:
        return None
    from skillrun.redact import Redactor  # noqa: PLC0415 - most runs are not written down
    from skillrun.report.records import Records  # noqa: PLC0415 - see above

    return Records(place(named, host, here), Redactor.of_environment(host.environ), state=host.state)
