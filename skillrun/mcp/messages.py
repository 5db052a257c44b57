"""Messages: one line of a client as a JSON-RPC message, or the error that answers it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

import mcp_types as types

_LONGEST_NUMBER: Final = 1 << 256
"""An id beyond it is refused: Python writes no number of thousands of digits, so it could not be answered."""
_TOO_LONG: Final = "The message is too long"


@dataclass(frozen=True, slots=True)
class Answer:
    """What is answered to a line that is passed on to nobody."""

    message: types.JSONRPCError


def answer(error: types.ErrorData, asker: types.RequestId | None = None) -> Answer:
    """Return an error as an answer; without an asker where it can't be told who asked."""
    return Answer(types.JSONRPCError(jsonrpc="2.0", id=asker, error=error))


def read(line: bytes | None) -> types.JSONRPCMessage | Answer | None:
    """Return the message of a line, or the answer to what is none; None where there is nothing to say.

    `line` is None for one that was too long to be kept. Bytes that are not UTF-8 are no message: with other
    characters in their place a script would be called with words that nobody sent. What looks like an answer gets
    none, or two programs would tell each other of their errors for ever.
    """
    if line is None:
        return _error(types.INVALID_REQUEST, _TOO_LONG)
    if not line.strip():
        return None
    try:
        message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        return _refused(line)
    if isinstance(message, types.JSONRPCRequest):
        wrong = isinstance(message.id, int) and abs(message.id) > _LONGEST_NUMBER
        return _error(types.INVALID_REQUEST, "The id is too long") if wrong else message
    # A request whose id is neither text nor a whole number would pass for a notification, and never be answered.
    if isinstance(message, types.JSONRPCNotification) and b'"id"' in line:
        return _with_id(message, line)
    return message


def _with_id(message: types.JSONRPCNotification, line: bytes) -> types.JSONRPCMessage | Answer:
    given = json.loads(line)
    if "id" not in given:
        return message
    number = given["id"]
    if isinstance(number, float) and number.is_integer() and abs(number) < _LONGEST_NUMBER:
        return types.JSONRPCRequest(
            jsonrpc="2.0", id=int(number), method=message.method, params=message.params
        )
    return _error(types.INVALID_REQUEST, "The id is neither a string nor a whole number")


def _refused(line: bytes) -> Answer | None:
    try:
        given = json.loads(line.decode())
    except (ValueError, RecursionError):
        return _error(types.PARSE_ERROR, "Parse error: a message is one line of JSON in UTF-8")
    if isinstance(given, list):
        return _error(types.INVALID_REQUEST, "A batch is not served; send each message on a line of its own")
    if isinstance(given, dict) and "method" not in given and ("result" in given or "error" in given):
        return None
    return _error(types.INVALID_REQUEST, "Not a JSON-RPC 2.0 message", _id(given))


def _id(given: Any) -> types.RequestId | None:
    found = given.get("id") if isinstance(given, dict) else None
    if isinstance(found, bool) or not isinstance(found, int | str) or not _writable(found):
        return None
    return found


def _writable(found: int | str) -> bool:
    if isinstance(found, int):
        return abs(found) <= _LONGEST_NUMBER
    try:
        found.encode()
    except UnicodeEncodeError:
        return False
    return True


def _error(code: int, message: str, asker: types.RequestId | None = None) -> Answer:
    return answer(types.ErrorData(code=code, message=message), asker)
