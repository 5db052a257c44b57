"""Network: the names that stand for a connection, and the host in the text of an address."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Final

from skillrun.permissions.endpoint import Endpoint
from skillrun.resources import table

if TYPE_CHECKING:
    from collections.abc import Sequence

_ADDRESS: Final = re.compile(
    r"(https?|wss?|ftp)://(?:[^/@\s]*@)?(\[[0-9a-fA-F:]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?(?=[/?#]|$)"
)
_PORTS: Final = {"http": 80, "ws": 80, "https": 443, "wss": 443, "ftp": 21}


def is_call(name: str) -> bool:
    """Whether calling a dotted Python name opens a connection."""
    exact, prefixes, but_exact, but_prefixes = _calls()
    if name not in exact and not name.startswith(prefixes):
        return False
    return name not in but_exact and not name.startswith(but_prefixes)


def roots() -> frozenset[str]:
    """Return the first parts of all Python names that matter, to rule out most files at once."""
    return _roots()


def is_program(words: Sequence[str | None]) -> bool:
    """Whether a command line connects. None stands for a word that is not known."""
    if not words or words[0] is None:
        return False
    known = table("check/network")
    program = words[0].rpartition("/")[2]
    if program in known["programs"]:
        # `npx` and its like fetch what is not there; asked for their version they do nothing.
        return words[1:2] not in (["--version"], ["--help"], ["-v"], ["version"])
    rest = [word for word in words[1:] if word is None or not word.startswith("-")]
    if program in {"python", "python3"} and words[1:2] == ["-m"]:
        return (
            rest[:1] != []
            and rest[0] in known["python_modules"]
            and (rest[0] != "pip" or rest[1:2] != ["--version"])
        )
    return rest[:1] != [] and rest[0] in known["subcommands"].get(program, ())


def is_node_module(name: str) -> bool:
    """Whether a Node module is there to connect."""
    return name in _node()


def host_in(text: str, *, whole: bool = True) -> str | None:
    """Return `host` or `host:port` of the address that a text begins with, in the spelling of a request; None: there is none.

    `whole` is false for the known beginning of a text: the host must then end inside it, since `https://api`
    with something unknown behind it names nobody.
    """
    match = _ADDRESS.match(text)
    if match is None or match[2].endswith(".") or (not whole and match.end() == len(text)):
        return None
    try:
        rule = Endpoint(match[2].strip("[]"), int(match[3] or _PORTS[match[1]]))
    except ValueError:
        return None
    return str(rule)


@functools.cache
def _calls() -> tuple[frozenset[str], tuple[str, ...], frozenset[str], tuple[str, ...]]:
    known = table("check/network")
    names = [name for group in known["python"] for name in group["names"]]
    but = known["python_but"]
    return (
        frozenset(name for name in names if not name.endswith(".")),
        tuple(name for name in names if name.endswith(".")),
        frozenset(name for name in but if not name.endswith(".")),
        tuple(name for name in but if name.endswith(".")),
    )


@functools.cache
def _roots() -> frozenset[str]:
    exact, prefixes, _, _ = _calls()
    return frozenset(name.split(".", 1)[0] for name in (*exact, *prefixes))


@functools.cache
def _node() -> frozenset[str]:
    return frozenset(table("check/network")["node"])
