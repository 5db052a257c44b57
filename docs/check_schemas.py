"""The JSON Schemas of what `check` and `lock` write, with the names that the code uses."""
# ruff: noqa: INP001 - beside the pages, not a package

from __future__ import annotations

from typing import Any, Final

from schemas import DRAFT
from skillrun.check.baseline import SCHEMA as BASELINE
from skillrun.check.lock import SCHEMA as LOCK
from skillrun.check.registry import RULES
from skillrun.check.static.use import Confidence
from skillrun.permissions.reading import LIMIT_NAMES
from skillrun.problem import Severity

TEXT: Final = {"type": "string"}
TEXT_OR_NULL: Final = {"type": ["string", "null"]}
TEXTS: Final = {"type": "array", "items": TEXT}
COUNT: Final = {"type": "integer", "minimum": 0}
FROM_ONE: Final = {"type": ["integer", "null"], "minimum": 1}
NUMBER: Final = {"type": ["number", "null"], "exclusiveMinimum": 0}
FINGERPRINT: Final = {"type": "string", "pattern": "^[0-9a-f]{32}$"}
PLACE: Final = {"path": TEXT_OR_NULL, "line": FROM_ONE, "column": FROM_ONE}


def closed(members: dict[str, Any]) -> dict[str, Any]:
    """Return an object with exactly these members."""
    return {"type": "object", "required": list(members), "additionalProperties": False, "properties": members}


def many(item: dict[str, Any]) -> dict[str, Any]:
    """Return a list."""
    return {"type": "array", "items": item}


def document(schema: str, title: str, members: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of one document."""
    return {"$schema": DRAFT, "title": title, **closed({"schema": {"const": schema}, **members})}


def check() -> dict[str, Any]:
    """Return the schema of `skillrun check --json`. Members may be added within a version, so a reader ignores others."""
    rule = {"enum": [rule.name for rule in RULES]}
    finding = {
        "rule": rule,
        "severity": {"enum": [one.value for one in Severity]},
        "message": TEXT,
        "help": TEXT_OR_NULL,
        **PLACE,
        "confidence": {"enum": [one.value for one in Confidence]},
        "skill": {**TEXT_OR_NULL, "description": "the skill's folder, relative to the project"},
        "fingerprint": FINGERPRINT,
        "related": many(closed(PLACE)),
    }
    ignored = {"rule": rule, "skill": TEXT_OR_NULL, "fingerprint": FINGERPRINT, "reason": TEXT, **PLACE}
    summary = {
        **dict.fromkeys(("errors", "warnings", "notes", "ignored", "in_baseline"), COUNT),
        "complete": {
            "type": "boolean",
            "description": "every root was looked through and every SKILL.md was read",
        },
    }
    members = {
        "checked": closed({"skills": COUNT, "scripts": COUNT}),
        "findings": many(closed(finding)),
        "ignored": many(closed(ignored)),
        "summary": closed(summary),
    }
    return document("skillrun.check/1", "skillrun check --json", members)


def lock() -> dict[str, Any]:
    """Return the schema of `skillrun.lock`."""
    rights = {
        "fs_read": TEXTS,
        "fs_write": TEXTS,
        "network": {"anyOf": [{"const": True}, TEXTS]},
        "env": TEXTS,
        "timeout": NUMBER,
        "limits": closed(dict.fromkeys(LIMIT_NAMES, NUMBER)),
        "denied": TEXTS,
        "unconfined": TEXT_OR_NULL,
    }
    entry = {
        "digest": {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"},
        "rights": closed(rights),
        "files": {"type": ["object", "null"], "additionalProperties": TEXT},
    }
    return document(
        LOCK, "skillrun.lock", {"skills": {"type": "object", "additionalProperties": closed(entry)}}
    )


def baseline() -> dict[str, Any]:
    """Return the schema of `skillrun-baseline.json`."""
    entry = {"fingerprint": FINGERPRINT, "rule": TEXT, "skill": TEXT_OR_NULL, "what": TEXTS}
    return document(BASELINE, "skillrun-baseline.json", {"roots": TEXTS, "findings": many(closed(entry))})
