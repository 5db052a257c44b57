"""Servers: the operator's file of other MCP servers, in the form that clients share, with a ceiling for each.

    {"mcpServers": {"files": {"command": "npx", "args": ["-y", "some-server"], "ceiling": "files.yaml",
                              "workspace": "docs", "env": {"TOKEN": "…"}, "tools": {"read": "sha256:…"}}}}

`tools` pins what may be called without asking a person: each by the digest of its name, description and schema.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from skillrun.errors import ConfigError
from skillrun.problem import At, error

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,31}")
_KEYS: Final = {
    "command": str, "args": list, "env": dict, "ceiling": str, "workspace": str, "tools": dict, "type": str,
}  # fmt: skip
_LONGEST: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Listed:
    """One server of the file. Paths are absolute; `pins` maps names of tools to digests."""

    name: str
    command: tuple[str, ...]
    ceiling: str
    workspace: str | None
    env: Mapping[str, str]
    pins: Mapping[str, str]


def read_servers(path: Path) -> tuple[Listed, ...]:
    """Read the file. Raises ConfigError for what is wrong in it; a server without a ceiling is wrong."""
    try:
        with path.open("rb") as file:
            data = file.read(_LONGEST + 1)  # what is cut is no JSON any more
        found = json.loads(data)
    except OSError as wrong:
        raise _wrong(path, f"it can't be read: {wrong.strerror}") from None
    except (ValueError, RecursionError) as wrong:
        raise _wrong(path, f"it is no JSON: {wrong}") from None
    servers = found.get("mcpServers") if isinstance(found, dict) else None
    if not isinstance(servers, dict):
        raise _wrong(path, "it has no map `mcpServers`")
    return tuple(_server(path, name, one) for name, one in servers.items())


def _server(path: Path, name: str, given: Any) -> Listed:
    if not _NAME.fullmatch(name):
        raise _wrong(path, f"`{name}` is no name: letters, digits and `-`, a letter first, 32 at most")
    if not isinstance(given, dict):
        raise _wrong(path, f"`{name}` is no map")
    for key, value in given.items():
        kind = _KEYS.get(key)
        if kind is None or not isinstance(value, kind):
            raise _wrong(
                path, f"`{name}.{key}` is not known, or of the wrong type; there are {', '.join(_KEYS)}"
            )
    texts = [*given.get("args", []), *given.get("env", {}).values(), *given.get("tools", {}).values()]
    if not all(isinstance(text, str) for text in texts) or given.get("type", "stdio") != "stdio":
        raise _wrong(path, f"`{name}` is a stdio server whose `args`, `env` and `tools` hold texts")
    for key in ("command", "ceiling"):
        if not given.get(key):
            raise _wrong(path, f"`{name}` has no `{key}`: a server runs under a ceiling of its own")
    workspace = given.get("workspace")
    return Listed(
        name=name,
        command=(given["command"], *given.get("args", [])),
        ceiling=_place(path, given["ceiling"]),
        workspace=None if workspace is None else str(path.parent / workspace),
        env=given.get("env", {}),
        pins=given.get("tools", {}),
    )


def _place(path: Path, ceiling: str) -> str:
    """Tell a file from a preset as `--ceiling` does; a file is relative to the one that names it."""
    file = "/" in ceiling or ceiling.endswith((".yaml", ".yml"))
    return str(path.parent / ceiling) if file else ceiling


def _wrong(path: Path, message: str) -> ConfigError:
    return ConfigError(error("mcp-servers", f"the servers in `{path.name}`: {message}", at=At(path)))
