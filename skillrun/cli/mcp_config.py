"""Configurations: what a client's own file says to start `skillrun mcp` as it was called."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from skillrun.cli.setting import current

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillrun.cli.setting import Setting

NAME: Final = "skillrun"


def written(client: str, setting: Setting) -> str:
    """Return the configuration for a client, one of CLIENTS. Every path in it is absolute."""
    return CLIENTS[client](own_command(), _words(setting))


def own_command() -> list[str]:
    """Return how to start this very skillrun.

    Never `python -m skillrun` alone: that looks for the package in the folder the client stands in first, and a
    project that has one of that name would run, unconfined.
    """
    program = Path(sys.executable).parent / NAME
    return [str(program)] if program.is_file() else [sys.executable, "-I", "-m", NAME]


def _words(setting: Setting) -> list[str]:
    words = ["mcp"]
    for root in setting.skills:
        words += ["--skills", str(current() / root)]
    words += ["--workspace", str(setting.folder().resolve())]
    for flag, value in (
        ("--ceiling", setting.named_ceiling()),
        ("--backend", setting.backend),
        ("--require", setting.require),
    ):
        words += [] if value is None else [flag, str(value)]
    return words


def _servers(command: Sequence[str], words: Sequence[str]) -> str:
    return _json({"mcpServers": {NAME: {"command": command[0], "args": [*command[1:], *words]}}})


def _vscode(command: Sequence[str], words: Sequence[str]) -> str:
    return _json(
        {"servers": {NAME: {"type": "stdio", "command": command[0], "args": [*command[1:], *words]}}}
    )


def _codex(command: Sequence[str], words: Sequence[str]) -> str:
    args = ", ".join(_toml(word) for word in [*command[1:], *words])
    return f"[mcp_servers.{NAME}]\ncommand = {_toml(command[0])}\nargs = [{args}]\n"


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _toml(text: str) -> str:
    """Write a basic string: JSON's escapes are TOML's, and TOML wants DEL escaped too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


CLIENTS: Final[dict[str, Callable[[Sequence[str], Sequence[str]], str]]] = {
    "claude": _servers,
    "cursor": _servers,
    "vscode": _vscode,
    "codex": _codex,
}
