"""Lines: calls written as JSON, one a line; a line that is wrong is a problem with its place, and no other is lost."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from skillrun.errors import UsageError
from skillrun.permissions.near import near_key
from skillrun.problem import At, Problem, error
from skillrun.running.call import Call

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

KEYS: Final = {
    "id": "anything that is told again in the answer: a text or a number",
    "skill": "a key, or a folder with a slash; needed",
    "script": "the name of the script; may be left out when there is one",
    "arguments": "a list of texts",
    "stdin": "a text, given as UTF-8",
    "timeout": "seconds; can only shorten",
}
"""What a line may say. None of it is a grant (DESIGN 7.5)."""
LONGEST: Final = 16 << 20
"""Bytes of a line that are read as JSON; more is a mistake in the file, or somebody's attack on our memory."""
_LONGEST_ID: Final = 1_000


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a file of calls: its number from 1, a digest of its bytes, and the call or what is wrong."""

    number: int
    digest: str
    id: str | int | None = None
    call: Call | None = None
    problem: Problem | None = None


def read_lines(file: BinaryIO, path: Path) -> Iterator[Line]:
    """Read calls as they come; blank lines are counted and no calls. `path` is named in problems."""
    for number, raw in enumerate(_bounded(file), 1):
        text = raw.strip()
        if not text:
            continue
        digest = f"sha256:{hashlib.sha256(text).hexdigest()}"
        identity: str | int | None = None
        try:
            fields = _fields(text)
            identity = _identity(fields)
            call = _call(fields).checked()
        except _WrongLineError as wrong:
            at = At(path=path, line=number, column=wrong.column)
            yield Line(
                number, digest, identity, problem=error("batch-line", str(wrong), at=at, help=wrong.help)
            )
        except UsageError as wrong:
            at = At(path=path, line=number)
            yield Line(
                number, digest, identity, problem=error(wrong.problem.rule, wrong.problem.message, at=at)
            )
        else:
            yield Line(number, digest, identity, call)


def _bounded(file: BinaryIO) -> Iterator[bytes]:
    """Give lines, of one that is too long only enough to see that it is."""
    while raw := file.readline(LONGEST + 1):
        rest = raw
        while rest and not rest.endswith(b"\n") and len(rest) > LONGEST:
            rest = file.readline(LONGEST + 1)
        yield raw


class _WrongLineError(Exception):
    """Something in a line that is no call."""

    def __init__(self, message: str, *, column: int | None = None, help: str | None = None) -> None:  # noqa: A002 - the word of a problem
        super().__init__(message)
        self.column = column
        self.help = help


def _fields(text: bytes) -> dict[str, Any]:
    if len(text) >= LONGEST:
        raise _WrongLineError(f"the line has more than {LONGEST} bytes")
    try:
        found = json.loads(text.decode("utf-8-sig"), object_pairs_hook=_once, parse_constant=_no_constant)
    except UnicodeDecodeError as wrong:
        raise _WrongLineError(f"the line is not UTF-8: {wrong.reason}", column=wrong.start + 1) from None
    except json.JSONDecodeError as wrong:
        raise _WrongLineError(f"the line is not JSON: {wrong.msg.lower()}", column=wrong.colno) from None
    except (RecursionError, ValueError) as wrong:
        raise _WrongLineError(f"the line is not JSON that can be read: {wrong}") from None
    if not isinstance(found, dict):
        raise _WrongLineError(
            f"the line is {_kind(found)}, and a call is an object", help='write {"skill": "NAME"}'
        )
    for key in found:
        if key not in KEYS:
            near = near_key(key, KEYS)
            advice = f"did you mean `{near}`?" if near else f"there are {', '.join(KEYS)}"
            raise _WrongLineError(f"`{key}` is no part of a call", help=advice)
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise _WrongLineError(f"`{twice}` stands twice in one object")
    return found


def _no_constant(name: str) -> float:
    raise _WrongLineError(f"`{name}` is not JSON")


def _identity(fields: dict[str, Any]) -> str | int | None:
    found = fields.get("id")
    right = (
        found is None or isinstance(found, str) or (isinstance(found, int) and not isinstance(found, bool))
    )
    if not right or len(str(found)) > _LONGEST_ID:
        raise _WrongLineError(
            f"`id` is {_kind(found)}, and should be a text or a number of at most {_LONGEST_ID} characters"
        )
    return found


def _call(fields: dict[str, Any]) -> Call:
    skill = _text(fields, "skill")
    if not skill:
        raise _WrongLineError(
            "`skill` is missing: a call names what is to be run", help="give a key, or a folder with a slash"
        )
    arguments = fields.get("arguments") or []
    if not isinstance(arguments, list) or not all(isinstance(word, str) for word in arguments):
        raise _WrongLineError(
            "`arguments` is not a list of texts", help='write ["--pages", "3"], numbers in quotes too'
        )
    timeout = fields.get("timeout")
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, int | float)):
        raise _WrongLineError(f"`timeout` is {_kind(timeout)}, and should be a number of seconds")
    if timeout is not None and not 0 < timeout <= _MOST_SECONDS:
        raise _WrongLineError(
            f"`timeout` is {timeout}, and should be above 0", help="leave it out for the ceiling's"
        )
    try:
        stdin = (_text(fields, "stdin") or "").encode()
    except UnicodeEncodeError:
        raise _WrongLineError("`stdin` holds half of a surrogate pair, which is no character") from None
    return Call(
        skill=skill,
        script=_text(fields, "script"),
        arguments=tuple(arguments),
        stdin=stdin,
        timeout=None if timeout is None else float(timeout),
    )


_MOST_SECONDS: Final = 1e9


def _text(fields: dict[str, Any], key: str) -> str | None:
    found = fields.get(key)
    if found is not None and not isinstance(found, str):
        raise _WrongLineError(f"`{key}` is {_kind(found)}, and should be a text")
    return found


def _kind(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")
