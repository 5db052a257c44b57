"""Every key of a SKILL.md request and of a skillrun.yaml: its type and meaning in words, and its JSON Schema.

The names come from the code; `generate.py` stops when a key has no entry here, or an entry no key.
"""
# ruff: noqa: INP001 - a program of the documentation, not a package

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from skillrun.permissions.reading import LIMIT_NAMES
from skillrun.permissions.script_entries import SCHEMA_KEYS
from skillrun.resources import table

if TYPE_CHECKING:
    from collections.abc import Iterable

# JSON Schema takes ECMA 262 regular expressions. What is written here means the same in Python's `re`.
NULL_WORDS: Final = r"(?:null|Null|NULL|~)"
_BLANKS = r"[ \t\r\n]*"
_BAD = r"\u0000-\u001f\u007f-\u009f$*?\[\]{}"


def path_pattern(*, comma: bool = True, blanks: bool = True) -> str:
    """Return the pattern of a path as `spelled.path_fault` accepts it; without commas or blanks where they part."""
    no = _BAD + ("" if comma else ",") + ("" if blanks else r"\s")
    return rf"(?:\$\{{(?:workspace|skill|scratch)\}}(?:/[^{no}]*)?|~/[^{no}]*|[^~{no}][^{no}]*)"


PATH: Final = path_pattern()
_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_PORT = r"(?!0+(?:-|\s|$))(?:[0-5]?[0-9]{1,4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
_PORTS = rf"(?::{_PORT}(?:-{_PORT})?)?"
# A name whose last label is a number is an address to some resolvers, so it has to be a whole one.
_NAME_HOST = rf"(?!(?:[^\s:]*\.)?(?:[0-9]+|0[xX][0-9a-fA-F]*)\.?(?::|\s|$)){_LABEL}(?:\.{_LABEL})*\.?"


def host_pattern() -> str:
    """Return the pattern of a host rule as `Endpoint.parse` accepts it, as far as a pattern can say it."""
    shared = "|".join(name.replace(".", r"\.") for name in table("suffixes")["shared"])
    below = rf"(?!(?:{shared})\.?(?::|\s|$))(?=[^\s:]*[^\s:.]\.[^\s:.])"
    v4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}\.?"
    v6 = r"\[[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*\]"
    return rf"(?:(?:(?:\*\.{below})?{_NAME_HOST}|{v4}|{v6}){_PORTS})"


VARIABLE: Final = r"[A-Za-z_][A-Za-z0-9_]*"
_UNITS = r"(?:|B|KiB|MiB|GiB|TiB|kB|MB|GB|TB)"
_MOST = 2**62 - 1  # the largest whole number that the reader takes


def whole(pattern: str) -> dict[str, Any]:
    """Return the schema of a text that matches a pattern from end to end."""
    return {"type": "string", "pattern": f"^{pattern}$"}


def words(pattern: str) -> dict[str, Any]:
    """Return the schema of a text that is a list of words, blanks between them, or a word for null."""
    return whole(rf"{_BLANKS}(?:{NULL_WORDS}|(?:{pattern}(?:\s+{pattern})*)?){_BLANKS}")


def one(pattern: str) -> dict[str, Any]:
    """Return the schema of a text that stands for one scalar, or for null when it is empty."""
    return whole(rf"{_BLANKS}(?:{NULL_WORDS}|{pattern})?{_BLANKS}")


NULL: Final = {"type": "null"}
PATHS: Final = {
    "anyOf": [
        NULL,
        whole(path_pattern(comma=False)),
        {"type": "array", "items": whole(PATH)},
    ]
}
HOSTS: Final = {"anyOf": [NULL, {"type": "boolean"}, {"type": "array", "items": whole(host_pattern())}]}
NAMES: Final = {"anyOf": [NULL, {"type": "array", "items": whole(VARIABLE)}]}
# `.inf` is more than the largest double, so the bound keeps it out.
SECONDS: Final = {"type": "number", "exclusiveMinimum": 0, "maximum": 1.7976931348623157e308}
_NUMBER = (
    r"(?:\+?(?=[0-9.]*[1-9])(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
    r"|0o0*[1-7][0-7]*|0x0*[1-9a-fA-F][0-9a-fA-F]*)"
)
_WHOLE = r"(?:\+?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)"
_NO_ZERO = r"(?!\s*\+?0+(?:\s|$|[A-Za-z]*B)|\s*0[ox]0+\s*$)"


def size(name: str) -> dict[str, Any]:
    """Return the schema of one limit. Only what bounds output and files may be 0."""
    least = 0 if name in {"output", "file_size"} else 1
    number = {"type": "integer", "minimum": least, "maximum": _MOST}
    if name == "processes":
        return number
    return {"anyOf": [number, whole(rf"{_NO_ZERO if least else ''}[0-9]{{1,18}}\s?{_UNITS}")]}


def size_word(name: str) -> dict[str, Any]:
    """Return the schema of one limit in the string form."""
    start = "" if name in {"output", "file_size"} else _NO_ZERO
    unit = "" if name == "processes" else rf"|[0-9]{{1,18}}\s?{_UNITS}"
    return {"anyOf": [size(name), whole(rf"{start}{_BLANKS}(?:{_WHOLE}{unit}){_BLANKS}")]}


def closed(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the schema of a map that has these keys and no others."""
    return {"type": "object", "properties": properties, "additionalProperties": False, **more}


LIMITS: Final = closed({name: size(name) for name in LIMIT_NAMES})
_FLAG: Final = {"type": "string", "pattern": "^--?[A-Za-z0-9][A-Za-z0-9_.-]*=?$"}
_PARAMETER: Final = closed(
    {
        **dict.fromkeys(SCHEMA_KEYS, True),
        "type": {"enum": ["string", "integer", "number", "boolean", "array", "object", "null"]},
        "arg": {"anyOf": [{"type": "integer", "minimum": 1}, {"const": "stdin"}, _FLAG]},
        "repeat": {"type": "boolean"},
        "false_arg": _FLAG,
        "access": {"enum": ["read", "write"]},
        "required": {"type": ["boolean", "array"]},
    }
)
_SCRIPT: Final = {
    "description": {"type": ["string", "null"], "minLength": 1},
    "parameters": {
        "type": ["object", "null"],
        "propertyNames": {"pattern": "^(?!tool_call$)[A-Za-z_][A-Za-z0-9_]{0,63}$"},
        "additionalProperties": _PARAMETER,
    },
}
SCRIPTS: Final = {
    "type": "object",
    "additionalProperties": {
        "anyOf": [
            NULL,
            closed(
                {
                    **_SCRIPT,
                    "timeout": {"anyOf": [NULL, SECONDS]},
                    "output": {"enum": ["text", "json", None]},
                    "subcommands": {
                        "type": ["object", "null"],
                        "propertyNames": {"pattern": "^[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}$"},
                        "additionalProperties": {"anyOf": [NULL, closed(_SCRIPT)]},
                    },
                }
            ),
        ]
    },
}


def maybe(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that takes null as well."""
    return {"anyOf": [NULL, schema]}


@dataclass(frozen=True, slots=True)
class Key:
    """One key: its type in words, what it means, its schema, and its schema as a string of the string form.

    `text` None means that the string form can't say it.
    """

    type: str
    meaning: str
    schema: dict[str, Any]
    text: dict[str, Any] | None = None

    def described(self) -> dict[str, Any]:
        """Return the schema with the meaning as the help that an editor shows."""
        return {"description": plain(self.meaning), **self.schema}


def plain(text: str) -> str:
    """Return a text without the marks of Markdown."""
    return text.replace("`", "").replace("**", "")


REQUEST: Final = {
    "fs_read": Key(
        "list of paths",
        "Folders and files the script wants to read. A folder means everything below it. Reading includes executing.",
        PATHS,
        words(path_pattern(comma=False, blanks=False)),
    ),
    "fs_write": Key(
        "list of paths",
        "Folders and files the script wants to write. Writing includes reading. What does not exist is made before the run.",
        PATHS,
        words(path_pattern(comma=False, blanks=False)),
    ),
    "network": Key(
        "`true`, `false` or a list of hosts",
        "`true` asks for the whole network, this machine's own services included. A host is `name`, `name:port`, "
        "`*.suffix` or an address; without a port it is 443.",
        HOSTS,
        {"anyOf": [words(host_pattern()), one("(?:true|True|TRUE|false|False|FALSE)")]},
    ),
    "timeout": Key(
        "number of seconds above 0", "How long the script may take.", maybe(SECONDS), one(_NUMBER)
    ),
    "trust": Key(
        "`external` or `core`",
        "`core` asks to run unconfined. Only you can grant it, with a `trusted` line of your own skillrun.yaml.",
        maybe({"enum": ["external", "core"]}),
        one("(?:external|core)"),
    ),
    "env": Key(
        "list of names",
        "Variables of yours that the script wants. Some names are never passed.",
        NAMES,
        words(VARIABLE),
    ),
    "limits": Key(
        "map of `memory`, `processes`, `file_size`, `output`",
        "Bounds of the run. Sizes are bytes, or a number with a unit such as `512MiB`.",
        maybe(LIMITS),
        one("(?!)"),
    ),
    "cwd": Key(
        "`workspace` or `skill`",
        "The folder the script starts in. Relative paths of the request start there too.",
        maybe({"enum": ["workspace", "skill"]}),
        one("(?:workspace|skill)"),
    ),
    "approval": Key(
        "`true` or `false`",
        "`true` asks that a person agrees to each call.",
        maybe({"type": "boolean"}),
        one("(?:true|True|TRUE|false|False|FALSE)"),
    ),
    "scripts": Key(
        "map from script name to a map",
        "What each script takes: `description`, `parameters`, `timeout`, `output`, `subcommands`. See [Scripts](scripts.md).",
        maybe(SCRIPTS),
        one("(?!)"),
    ),
}

LIMIT_MEANINGS: Final = {
    "memory": "All memory of the script and what it starts, together. At least 1 byte.",
    "processes": "Processes at the same time, the script included. A whole number from 1, without a unit.",
    "file_size": "The largest file it may write. May be 0.",
    "output": "How much is kept of each of stdout and stderr. All of it is drained; it never ends a run. May be 0.",
}

CEILING: Final = {
    "enabled": Key(
        "`true` or `false`",
        "`false` runs every script unconfined, and every run says so.",
        {"type": "boolean"},
    ),
    "fs_read": Key("list of paths", "Roots below which reading can be granted.", PATHS),
    "fs_write": Key(
        "list of paths", "Roots below which writing can be granted. They are read roots as well.", PATHS
    ),
    "deny": Key(
        "list of paths",
        "Neither readable nor writable, whatever is granted. A relative entry is a name under every granted root.",
        {
            "anyOf": [
                NULL,
                whole(rf"(?!(?:.*/)?\.\.(?:/|$)){path_pattern(comma=False)}"),
                {"type": "array", "items": whole(rf"(?!(?:.*/)?\.\.(?:/|$)){PATH}")},
            ]
        },
    ),
    "network": Key(
        "`true`, `false` or a list of hosts",
        "`true` allows any host. A list allows these and no other; a run whose grant is a list of hosts is refused "
        "for now, since nothing can enforce one yet.",
        HOSTS,
    ),
    "timeout": Key("number of seconds above 0", "The most a script may take.", SECONDS),
    "env": Key("list of names", "Variables that can be passed on.", NAMES),
    "limits": Key(
        "map of `memory`, `processes`, `file_size`, `output`",
        "The most a run may use of each.",
        LIMITS,
    ),
    "require": Key(
        "`full`, `confined` or `none`",
        "The least enforcement a run may have. Where it can't be had, nothing is started.",
        {"enum": ["none", "confined", "full"]},
    ),
}

_DIGEST = whole("sha256:[0-9a-f]{64}")


def ceiling(keys: Iterable[str]) -> dict[str, Any]:
    """Return the schema of a ceiling with some of the keys."""
    return closed({key: {"$ref": f"#/definitions/{key}"} for key in keys})


def config(layer: Iterable[str]) -> dict[str, Key]:
    """Return the top-level keys of a skillrun.yaml; `layer` are the keys of a floor."""
    request = closed({name: key.described() for name, key in REQUEST.items()})
    entry = closed({"digest": _DIGEST, "request": request, "ceiling": ceiling(layer)})
    one_path = whole(PATH)
    return {
        "sandbox": Key("map", "The ceiling: what every script may have at most.", ceiling(CEILING)),
        "trusted": Key(
            "list of maps with `skill` and `digest`",
            "Skills that may run unconfined when they ask for `trust: core`, in exactly this version.",
            maybe(
                {
                    "type": "array",
                    "items": closed({"skill": one_path, "digest": _DIGEST}, required=["skill", "digest"]),
                }
            ),
        ),
        "skills": Key(
            "map from skill key to a map with `digest`, `request`, `ceiling`",
            "What you say about one skill. `request` replaces the skill's own, `ceiling` narrows once more, `digest` "
            "binds both to one version.",
            {"type": "object", "additionalProperties": entry},
        ),
        "interpreters": Key(
            "map from a kind of interpreter to a path",
            "The program that runs scripts of that kind, such as `python: ~/venvs/skills/bin/python`.",
            {"type": "object", "additionalProperties": one_path},
        ),
        "workspaces": Key(
            "list of paths",
            "Folders that may be a workspace although the rule refuses them. Exactly these, not what lies below.",
            PATHS,
        ),
        "tools": Key(
            "map with `max_tools`, `approve` and `unattended_approval`",
            "What is said about tools for models: how many, which kinds of access need a person's word, and whether `--yes` "
            "of `skillrun approve` stands for one where there is no terminal (false unless it is said, and unless all who "
            "say it say true).",
            closed(
                {
                    "max_tools": {"type": "integer", "minimum": 1},
                    "approve": NAMES,
                    "unattended_approval": {"type": "boolean"},
                }
            ),
        ),
        "floor": Key(
            "map",
            "A ceiling that no flag of the command line and no `--ceiling` goes past.",
            ceiling(layer),
        ),
    }
