"""Names: what a model calls a tool, within the rules of every model API at once."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,62}")
"""What Anthropic, OpenAI, Gemini and MCP all take (facts/mcp 3): at most 63, no dot, a letter or `_` first."""
LONGEST: Final = 63
RESERVED_NAMESPACES: Final = frozenset({"computer", "browser"})
"""Namespaces that OpenAI's Responses API keeps for itself: functions in them are dropped (seed 001, Tool Namespaces)."""
_HASH: Final = 8  # hexadecimal digits: one clash expected among 65,000 names of one skill


@dataclass(frozen=True, slots=True)
class Identity:
    """What a script's tool is, whatever it is called. Approvals, allow-lists and logs go by this (DESIGN 10)."""

    root: str
    folder: str
    script: str
    subcommand: tuple[str, ...] = ()

    def digest(self) -> str:
        """Return a short hash, the same on every run."""
        text = "\0".join((self.root, self.folder, self.script, *self.subcommand))
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:_HASH]


def script_name(
    skill: str, script: str, subcommand: Sequence[str], identity: Identity, *, longest: int = LONGEST
) -> str:
    """Return `skill__script[__subcommand]`. What does not fit, or has nothing to say in ASCII, gets a hash."""
    stem = script.rsplit("/", 1)[-1]
    stem = script[: len(script) - len(stem)] + (stem.rsplit(".", 1)[0] or stem)
    parts = [_part(part) for part in (skill, stem, *subcommand)]
    name = "__".join(part for part in parts if part)
    if not all(parts):
        name = f"{name or 'skill'}__{identity.digest()}"
    if not re.match(r"[A-Za-z_]", name):
        name = f"_{name}"
    return name if len(name) <= longest else with_hash(name, identity.digest(), longest=longest)


def with_hash(name: str, digest: str, *, longest: int = LONGEST) -> str:
    """Return a name with a hash at its end, cut to fit."""
    return f"{name[: longest - len(digest) - 1].rstrip('_-')}_{digest}"


def class_name(name: str) -> str:
    """Return what a class is called by: snake_case, reduced to ASCII, without a trailing `_tool`.

    As the seeds have it: `WeatherLookup` is `weather_lookup`, `WeatherTool` is `weather`.
    """
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    plain = re.sub(r"[^A-Za-z0-9_-]", "-", plain)
    plain = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", plain)
    plain = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", plain).lower()
    return plain.removesuffix("_tool") or plain


def _part(text: str) -> str:
    """Return one part of a name: what has no place in it becomes one `_`, and no part holds two in a row."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"_{2,}", "_", re.sub(r"[^A-Za-z0-9_-]+", "_", plain)).strip("_-")
