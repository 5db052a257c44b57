"""The JSON Schemas of SKILL.md's front matter and of skillrun.yaml, for editors.

Draft 7, which every editor knows. A schema accepts what the reader accepts, and refuses what it refuses
as far as a schema can say it; tests/docs lists what it can't.
"""
# ruff: noqa: INP001 - a program of the documentation, not a package

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import keys as words

from skillrun.permissions.ceiling import CEILING_KEYS
from skillrun.permissions.config import LAYER_KEYS, TOP_KEYS
from skillrun.permissions.reading import LIMIT_NAMES
from skillrun.permissions.request import ALL_KEYS, OTHERS_KEYS, SECTION
from skillrun.permissions.request import TOP_KEYS as REQUEST_TOP_KEYS

if TYPE_CHECKING:
    from collections.abc import Iterable

DRAFT: Final = "http://json-schema.org/draft-07/schema#"
_ANY = r"[\s\S]"


def same_names(*, described: Iterable[str], known: Iterable[str], what: str) -> None:
    """Stop when the keys that are described are not the keys that the code reads."""
    described, known = set(described), set(known)
    if described != known:
        odd = ", ".join(sorted(described ^ known))
        raise SystemExit(f"error: docs/keys.py and the code disagree about the keys of {what}: {odd}")


def near(keys: Iterable[str], *, but: Iterable[str]) -> str:
    """Return a pattern of what `near_key` takes for a misspelling of one of the keys."""
    forms = [form for key in keys for form in (_folded(key), *_edits(key))]
    known = "|".join(map(re.escape, but))
    return f"^(?!(?:{known})$)(?:{'|'.join(dict.fromkeys(forms))})$"


def _folded(key: str) -> str:
    # `near_key` ignores letter case, `-`, `_` and one `s` at the end.
    letters = key.replace("_", "").removesuffix("s")
    return "[-_]*" + "".join(f"[{c}{c.upper()}][-_]*" for c in letters) + "(?:[sS][-_]*)?"


def _edits(key: str) -> list[str]:
    places = range(len(key))
    return [
        *(key[:i] + _ANY + key[i + 1 :] for i in places),
        *(key[:i] + _ANY + key[i:] for i in range(len(key) + 1)),
        *(key[:i] + key[i + 1 :] for i in places),
        *(key[:i] + key[i + 1] + key[i] + key[i + 2 :] for i in places[:-1]),
    ]


def skill_md() -> dict[str, Any]:
    """Return the schema of a SKILL.md's front matter."""
    same_names(described=words.REQUEST, known=ALL_KEYS, what="a request")
    same_names(described=words.LIMIT_MEANINGS, known=LIMIT_NAMES, what="limits")
    ours = {key: words.REQUEST[key].described() for key in ALL_KEYS}
    top_near = near(REQUEST_TOP_KEYS, but=(*REQUEST_TOP_KEYS, *OTHERS_KEYS))
    return {
        "$schema": DRAFT,
        "title": "Front matter of a SKILL.md, as skillrun reads it",
        "description": "What a skill asks for. Keys of other programs are free.",
        "type": "object",
        "properties": {
            "name": {"description": "What the skill is called: 1 to 64 of a-z, 0-9 and single hyphens."},
            "description": {"description": "What the skill does and when to use it."},
            **{key: {"$ref": f"#/definitions/{key}"} for key in REQUEST_TOP_KEYS},
            "metadata": {"if": {"type": "object"}, "then": {"$ref": "#/definitions/metadata"}},
        },
        # A key that is almost one of ours, and ours where nothing reads them, would be lost in silence.
        "patternProperties": {top_near: False, rf"^{SECTION}(?:\..*)?$": False},
        "dependencies": {key: _not_again(key) for key in REQUEST_TOP_KEYS},
        "definitions": {
            **ours,
            "section": words.maybe(words.closed({key: {"$ref": f"#/definitions/{key}"} for key in ALL_KEYS})),
            "metadata": _metadata(),
        },
    }


def _not_again(key: str) -> dict[str, Any]:
    """Refuse a key below `metadata` that stands at top level."""
    below = {SECTION: {"properties": {key: False}}, f"{SECTION}.{key}": False}
    return {"properties": {"metadata": {"properties": below}}}


def _metadata() -> dict[str, Any]:
    texts = {
        f"{SECTION}.{key}": {
            "description": words.plain(words.REQUEST[key].meaning),
            "anyOf": [
                *([text] if (text := words.REQUEST[key].text) else []),
                _no_text(words.REQUEST[key].schema),
            ],
        }
        for key in ALL_KEYS
    }
    bounds = {f"{SECTION}.limits.{name}": words.size_word(name) for name in LIMIT_NAMES}
    twice = {f"{SECTION}.{key}": {"properties": {SECTION: {"properties": {key: False}}}} for key in ALL_KEYS}
    bound_twice = {
        name: {"properties": {f"{SECTION}.limits": False, SECTION: {"properties": {"limits": False}}}}
        for name in bounds
    }
    return {
        "properties": {SECTION: {"$ref": "#/definitions/section"}, **texts, **bounds},
        "patternProperties": {
            near((SECTION,), but=(SECTION,)): False,
            rf"^{SECTION}\.(?!(?:{'|'.join(ALL_KEYS)}|limits\.(?:{'|'.join(LIMIT_NAMES)}))$)": False,
        },
        "dependencies": {**twice, **bound_twice},
    }


def _no_text(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the typed form of a key without its texts: in the string form a text is read as what it stands for."""
    return {"not": {"type": "string"}, **schema}


def skillrun_yaml() -> dict[str, Any]:
    """Return the schema of a skillrun.yaml."""
    top = words.config(LAYER_KEYS)
    same_names(described=words.CEILING, known=CEILING_KEYS, what="a ceiling")
    same_names(described=top, known=TOP_KEYS, what="skillrun.yaml")
    return {
        "$schema": DRAFT,
        "title": "skillrun.yaml",
        "description": "What skills may have at most. A project's file may hold sandbox and skills only, and only narrow.",
        **words.closed({key: top[key].described() for key in TOP_KEYS}),
        "definitions": {key: words.CEILING[key].described() for key in CEILING_KEYS},
    }
