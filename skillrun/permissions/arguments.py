"""Arguments: what a person typed on the command line and which paths it names (DESIGN 7.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from skillrun.permissions.resolve import Resolved, Resolver

_LONGEST_PATH: Final = 4096  # PATH_MAX on Linux; a longer argument is text


def argument_paths(arguments: Sequence[str], resolver: Resolver, cwd: Path) -> Iterator[tuple[str, Resolved]]:
    """Yield the existing paths that arguments name, relative to the folder the script runs in.

    `--option=PATH` names one as well. Nothing is expanded: the person's shell did that.
    """
    for argument in arguments:
        text = argument.partition("=")[2] if argument.startswith("-") else argument
        if not text or "\0" in text or len(text) > _LONGEST_PATH:
            continue
        resolved = resolver.follow(text if text.startswith("/") else f"{cwd}/{text}")
        # A link planted in the workspace must not decide where a person's word leads.
        if resolved.exists and resolved.escape(cwd) is None:
            yield text, resolved
