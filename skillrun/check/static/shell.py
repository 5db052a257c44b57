"""Shell: what a script does, from its words. What depends on its arguments is left out."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Final

from skillrun.check.static import network
from skillrun.check.static.shell_words import UNKNOWN, Command, Words
from skillrun.check.static.use import Confidence, Kind, Reading, Use
from skillrun.resources import table

if TYPE_CHECKING:
    from collections.abc import Iterator

_WRAPPERS: Final = frozenset(
    {
        "sudo",
        "nohup",
        "time",
        "exec",
        "command",
        "env",
        "nice",
        "timeout",
        "xargs",
        "builtin",
        "stdbuf",
        "doas",
        "setsid",
    }
)
_OPTION_VALUES: Final = {
    "sudo": ("-u", "-g", "-h", "-p", "-C", "-T"),
    "doas": ("-u", "-C"),
    "env": ("-u", "-C", "-S"),
    "xargs": ("-n", "-I", "-P", "-L", "-d", "-a", "-E", "-s"),
    "nice": ("-n",),
    "timeout": ("-s", "-k"),
    "stdbuf": ("-i", "-o", "-e"),
}
_WRITING: Final = frozenset({">", ">>", ">|", "&>", "&>>", "<>"})
_TAKES_PATHS: Final = {
    "mkdir": Kind.WRITE,
    "touch": Kind.WRITE,
    "rm": Kind.WRITE,
    "tee": Kind.WRITE,
    "cat": Kind.READ,
}
_LAST_IS_WRITTEN: Final = frozenset({"cp", "mv", "install", "ln"})
_SECRET: Final = re.compile(r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS|URL|ENDPOINT)$")
_ENVIRONMENT: Final = re.compile(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+")
_ASKS: Final = (":?", "?", ":-", "-", ":+", "+")
_PROGRAM: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


def read(text: str, *, embedded: bool = False) -> Reading:
    """Read a shell script. `embedded`: a command line inside another script, whose variables are that one's."""
    words = Words(text)
    words.scan()
    uses = [use for command in words.commands for use in _command(command, words)]
    if any(command.words[:1] in (("cd",), ("pushd",)) for command in words.commands):
        # Where it stands then is not known, so neither is what a relative path means.
        uses = [
            use
            for use in uses
            if use.kind not in {Kind.READ, Kind.WRITE} or str(use.value).startswith(("/", "~"))
        ]
    if any(command.words[:1] in (("source",), (".",)) for command in words.commands):
        # A name with an underscore is then as good as always a function of the other file.
        uses = [use for use in uses if use.kind is not Kind.PROGRAM or "_" not in str(use.value)]
    if not embedded:
        uses += _variables(words)
    uses.sort(key=lambda use: (use.line, use.column))
    return Reading("shell", tuple(uses))


def _command(command: Command, words: Words) -> Iterator[Use]:
    for operator, target in command.redirects:
        if _is_path(target):
            kind = Kind.WRITE if operator in _WRITING else Kind.READ
            yield _use(kind, target, command, f"{operator} {_shown(target)}", Confidence.HIGH)
    line = _unwrapped(command.words)
    if not line:
        return
    program = line[0].rpartition("/")[2]
    paths = [word for word in line[1:] if _is_path(word) and not word.startswith("-")]
    if line[0] in _TAKES_PATHS:
        for path in paths:
            yield _use(_TAKES_PATHS[line[0]], path, command, f"{line[0]} {_shown(path)}", Confidence.MEDIUM)
    elif line[0] in _LAST_IS_WRITTEN and _is_path(line[-1]) and len(line) > 2:  # noqa: PLR2004 - program, source, target
        yield _use(Kind.WRITE, line[-1], command, f"{line[0]} … {_shown(line[-1])}", Confidence.MEDIUM)
    if line[0] in words.functions or line[0].startswith((".", "~")) or not _PROGRAM.fullmatch(program):
        return
    known = [None if UNKNOWN in word else word for word in line]
    if network.is_program(known):
        hosts = (network.host_in(word.partition(UNKNOWN)[0], whole=UNKNOWN not in word) for word in line)
        host = next((host for host in hosts if host is not None), None)
        yield Use(
            Kind.NETWORK, host, command.line, command.column, " ".join(w for w in known[:2] if w is not None)
        )
    if program not in no_programs():
        yield Use(Kind.PROGRAM, program, command.line, command.column, program)


def _unwrapped(words: tuple[str, ...]) -> list[str]:
    """Leave out what only starts another program, with its options."""
    line = list(words)
    if line[:2] in (["command", "-v"], ["command", "-V"]):
        return []
    while len(line) > 1 and line[0] in _WRAPPERS:
        wrapper = line.pop(0)
        while line and _belongs_to(wrapper, line[0]):
            if line.pop(0) in _OPTION_VALUES.get(wrapper, ()):
                line[:1] = []
    return line


def _belongs_to(wrapper: str, word: str) -> bool:
    """Whether a word is an option of what starts the program, and not the program."""
    if word.startswith("-"):
        return True
    return (wrapper == "env" and "=" in word) or (wrapper == "timeout" and word[:1].isdigit())


def _variables(words: Words) -> Iterator[Use]:
    """Give variables that come from outside: named like a secret or an address, or asked for with a default or a message.

    A bare `$NAME` may as well be set by a file that is sourced, so it is no finding (facts: a third are noise).
    """
    seen: set[str] = set()
    for name, operator, line, column in words.taken:
        asks = operator.startswith(_ASKS)
        own = name in words.assigned and name not in words.kept and not operator.startswith((":?", "?"))
        if name in seen or not _ENVIRONMENT.fullmatch(name) or own:
            continue
        if asks or _SECRET.search(name):
            seen.add(name)
            sure = Confidence.HIGH if operator.startswith((":?", "?")) else Confidence.MEDIUM
            yield Use(
                Kind.ENV, name, line, column, f"${{{name}{operator}…}}" if operator else f"${name}", sure
            )


def _use(kind: Kind, path: str, command: Command, what: str, confidence: Confidence) -> Use:
    known, unknown, _ = path.partition(UNKNOWN)
    return Use(kind, known, command.line, command.column, what, confidence, exact=not unknown)


def _is_path(word: str) -> bool:
    """Whether a word is a path whose beginning is known, and not a descriptor, an address, or a pattern."""
    known = word.partition(UNKNOWN)[0]
    return (
        bool(known)
        and not known.startswith("&")
        and known != "-"
        and not known.isdigit()
        and "://" not in known
        and not re.search(r"[*?\[\]{}\s:]", known)
    )


def _shown(word: str) -> str:
    return word.replace(UNKNOWN, "…")


@functools.cache
def no_programs() -> frozenset[str]:
    """Return what is no program of its own, and what every system has."""
    known = table("check/programs")
    return frozenset((*known["builtins"]["names"], *known["everywhere"]["names"]))
