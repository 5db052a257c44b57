"""Search: find deferred tools by words, ranked, where the provider has no search of its own."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from skillrun.tools.outcome import Outcome
from skillrun.tools.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillrun.tools.outcome import ToolCall

MOST_FOUND: Final = 5
"""Tools that one search loads; the providers' own searches return 3 to 5 (facts/mcp 3)."""
_WORD = re.compile(r"[a-z0-9]+|[^\W\d_]+")
_EMPTY: Final = frozenset(
    [
        "a",
        "an",
        "and",
        "as",
        "at",
        "by",
        "for",
        "from",
        "i",
        "in",
        "into",
        "is",
        "it",
        "me",
        "my",
        "of",
        "on",
        "or",
        "that",
        "the",
        "this",
        "to",
        "with",
    ]
)
"""English words that say nothing about a tool."""
_K, _B = 1.2, 0.75  # Okapi BM25, the values of Robertson and Zaragoza (2009)
_NAME_WEIGHT: Final = 3  # a word of the name says more than one of the description


class ToolSearch(Tool):
    """Searches the tools that are not listed yet, by name, description and parameters. What it finds can be called next."""

    tool_name = "tool_search"
    description = (
        "Finds more tools by what they do. The tools it names can be called from then on. "
        "Search with a few words before you say that something can't be done."
    )
    parameters = {"query": {"type": "string", "description": "A few words about what is needed."}}  # noqa: RUF012 - a setting, as in every tool

    def __init__(self, hidden: Callable[[], Sequence[Tool]], load: Callable[[Sequence[Tool]], None]) -> None:
        super().__init__()
        self._hidden = hidden
        self._load = load

    def execute(self, query: str) -> Any:
        """Rank the hidden tools and load the best."""
        found = rank(query, self._hidden())[:MOST_FOUND]
        self._load(found)
        return {"found": [{"name": tool.full_name, "description": tool.about[:200]} for tool in found]}

    def run(self, call: ToolCall, arguments: dict[str, Any]) -> Outcome:
        """Search; nothing found is said in words."""
        outcome = super().run(call, arguments)
        return (
            outcome
            if outcome.structured["found"]
            else Outcome("no tool fits these words; try others", structured=outcome.structured)
        )


def rank(query: str, tools: Sequence[Tool]) -> list[Tool]:
    """Return the tools that have a word of the query, the best first (BM25); equal ones in their own order."""
    wanted = set(_words(query))
    texts = [_text(tool) for tool in tools]
    if not texts:
        return []
    average = sum(sum(text.values()) for text in texts) / len(texts) or 1
    seen = {word: sum(1 for text in texts if word in text) for word in wanted}
    scores: list[tuple[float, int]] = []
    for place, text in enumerate(texts):
        length = _K * (1 - _B + _B * sum(text.values()) / average)
        score = sum(
            math.log(1 + (len(texts) - seen[word] + 0.5) / (seen[word] + 0.5))
            * text[word]
            * (_K + 1)
            / (text[word] + length)
            for word in wanted
            if text[word]
        )
        if score > 0:
            scores.append((-score, place))
    return [tools[place] for _, place in sorted(scores)]


def _text(tool: Tool) -> Counter[str]:
    properties = tool.input_schema["properties"]
    described = " ".join(
        str(one.get("description", "")) for one in properties.values() if isinstance(one, dict)
    )
    counted = Counter(_words(f"{tool.about} {' '.join(properties)} {described}"))
    for word in _words(tool.full_name):
        counted[word] += _NAME_WEIGHT
    return counted


def _words(text: str) -> list[str]:
    words = [word for word in _WORD.findall(text.lower()) if word not in _EMPTY]
    return [_singular(word) for word in words]


def _singular(word: str) -> str:
    """Return a word without the ending of an English plural, roughly."""
    if len(word) < 4:  # noqa: PLR2004 - `gas` is no plural
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("xes", "ses", "ches", "shes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word
