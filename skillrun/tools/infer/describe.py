"""Describe: what a script says about itself: its docstring, else the comment at its head, never its licence."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_LINES: Final = 60
_LONGEST: Final = 1_000
"""Characters of a description; facts/mcp: a limit of 1024 was seen in an error of one API."""
_LOOKED_AT: Final = 20_000
"""Characters of a docstring or comment that are looked through for it."""
# A licence, and what is written for programs: they say nothing about the script.
_LEGAL = re.compile(
    r"copyright|licen[cs]e|SPDX-|all rights reserved|\(c\) ?\d{4}|warrant|redistribut|permission is hereby|"
    r"apache\.org|gnu\.org|AS IS|liab(?:le|ility)|without limitation",
    re.IGNORECASE,
)
_FOR_PROGRAMS = re.compile(
    r"-\*-|\bcoding[:=]|shellcheck|^vim?:|pylint|noqa|eslint|@ts-|prettier|type: ignore|^/// ?script|^///|^!|"
    r"^[-=#*_~\s]{3,}$|^(?:dependencies|requires-python) ?=|^\]|^\"",
)
_LINE = re.compile(r"^\s*(?:#|//|--|;+|%)\s?(.*)$")


def describe(source: str, tree: ast.Module | None) -> str | None:
    """Return what a source says about itself, at most 1,000 characters; None when it says nothing."""
    if tree is not None:
        own = ast.get_docstring(tree)
        if own and (text := _paragraphs(own.split("\n"))):
            return text
    return _paragraphs(list(_comment(source)))


def _comment(source: str) -> Iterator[str]:
    """Yield the lines of the comment at the head."""
    block = False
    for line in source.split("\n", _MOST_LINES)[:_MOST_LINES]:
        stripped = line.strip()
        if line.startswith("#!") or stripped in {"'use strict';", '"use strict";'}:
            continue
        if block or stripped.startswith("/*"):
            block = "*/" not in stripped
            yield re.sub(r"^/\*+!?|\*+/$|^\*+ ?", "", stripped.removesuffix("*/")).strip()
            continue
        found = _LINE.match(line)
        if found is None:
            if stripped:
                return
            yield ""
        else:
            yield found[1]


def _paragraphs(lines: list[str]) -> str | None:
    """Join the paragraphs that are about the script; one with a word of the law in it is left out."""
    kept: list[str] = []
    for paragraph in "\n".join(line.rstrip() for line in lines)[:_LOOKED_AT].split("\n\n"):
        own = [
            line for line in paragraph.split("\n") if line.strip() and not _FOR_PROGRAMS.search(line.strip())
        ]
        text = "\n".join(own).strip()
        if text and not _LEGAL.search(text):
            kept.append(text)
    joined = "\n\n".join(kept)
    return _cut(joined) if joined else None


def _cut(text: str) -> str:
    """Cut a long text at the end of a paragraph or a word."""
    if len(text) <= _LONGEST:
        return text
    head = text[:_LONGEST]
    return head.rsplit("\n\n", 1)[0] if "\n\n" in head[_LONGEST // 3 :] else head.rsplit(" ", 1)[0] + " …"
