"""Command: a program as a model, one line of JSON to it and one line back for each reply."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import selectors
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any, Final

from skillrun.conversation.messages import Reply, Said
from skillrun.conversation.model import Use
from skillrun.conversation.models.base import ModelError
from skillrun.problem import error
from skillrun.tools.outcome import ToolCall

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from skillrun.conversation.messages import Answered, Message
    from skillrun.conversation.model import Offer
    from skillrun.tools.outcome import Outcome

LONGEST_LINE: Final = 16 << 20
"""Bytes of one reply."""
MOST_CALLS: Final = 100
"""Calls of one reply."""
TIMEOUT: Final = 300.0
"""Seconds that a reply may take."""
PROVIDER: Final = "command"
_GRACE: Final = 2.0  # seconds to end by itself once its input is closed, and once more when it is told to
_SHORT: Final = 0.2  # the same, once it has failed
_CHUNK: Final = 1 << 16


class CommandError(ModelError):
    """The program did not reply as a model has to."""


class CommandModel:
    """A program that is the model; started once, with the caller's rights: nothing confines it.

    `words` are its command line, looked up in the PATH of `environ`, and started in `folder`. A reply may take
    `timeout` seconds. Its standard error is the caller's. The protocol is in docs/reference/chat-model.md.
    Raises CommandError when it can't be started. After any other CommandError it is ended, as what it says
    next might belong to an earlier question.
    """

    def __init__(
        self, words: Sequence[str], *, folder: Path, environ: Mapping[str, str], timeout: float = TIMEOUT
    ) -> None:
        self._name = words[0]
        self._timeout = timeout
        self._heard = bytearray()
        try:
            self._process = subprocess.Popen(
                list(words),
                cwd=folder,
                env=dict(environ),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                # Ctrl-C at the terminal is for skillrun, which ends it in order.
                start_new_session=True,
            )
        except (OSError, ValueError) as wrong:
            reason = getattr(wrong, "strerror", None) or str(wrong)
            raise self._error(f"can't be started: {reason}") from None
        assert self._process.stdin is not None  # noqa: S101 - both are pipes
        assert self._process.stdout is not None  # noqa: S101 - see above
        self._to, self._from = self._process.stdin, self._process.stdout
        for stream in (self._to, self._from):
            os.set_blocking(stream.fileno(), False)

    def __enter__(self) -> CommandModel:  # noqa: PYI034 - Self came with Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __call__(self, messages: Sequence[Message], offer: Offer, /) -> Reply:
        """Ask the program for the next reply. Raises CommandError."""
        line = json.dumps(request(messages, offer), ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        try:
            return reply_of(self._exchanged(line))
        except _NoReplyError as wrong:
            self.close(_SHORT)
            raise self._error(str(wrong)) from None

    def close(self, grace: float = _GRACE) -> None:
        """End the program: its input is closed, after `grace` seconds it gets TERM, then KILL with all that it started."""
        for stream in (self._to, self._from):
            with contextlib.suppress(OSError):
                stream.close()
        if self._process.returncode is not None:
            return
        if not self._over(grace):
            self._signal(signal.SIGTERM)
            self._over(grace)
        # Also where it has ended: what it left is in its group, whose number nobody else gets meanwhile.
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _over(self, seconds: float) -> bool:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self._process.returncode is not None

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _exchanged(self, line: bytes) -> bytes:
        """Send one line and return the next one. Raises _NoReplyError."""
        if self._process.returncode is not None:
            raise _NoReplyError("has ended already")
        self._hear()
        if self._heard:
            raise _NoReplyError(
                "wrote something that it was not asked for; a reply is one line, and nothing else"
            )
        end = time.monotonic() + self._timeout
        left = memoryview(line)
        with selectors.DefaultSelector() as both:
            both.register(self._from, selectors.EVENT_READ)
            both.register(self._to, selectors.EVENT_WRITE)
            while True:
                ready = [key.fileobj for key, _ in both.select(max(end - time.monotonic(), 0))]
                if not ready:
                    raise _NoReplyError(f"did not reply within {self._timeout:g} s")
                if self._to in ready:
                    left = self._sent(left)
                    if not left:
                        both.unregister(self._to)
                if self._from in ready and (found := self._line(unread=bool(left))) is not None:
                    return found

    def _sent(self, left: memoryview) -> memoryview:
        try:
            return left[os.write(self._to.fileno(), left[:_CHUNK]) :]
        except BlockingIOError:
            return left
        except BrokenPipeError:
            # It may have said why, or ended: reading tells.
            return left[:0]

    def _line(self, *, unread: bool) -> bytes | None:
        """Take what has come, and return the line that it ends. Raises _NoReplyError."""
        over = not self._hear()
        line, ended, rest = bytes(self._heard).partition(b"\n") if b"\n" in self._heard else (b"", b"", b"")
        if ended and unread:
            raise _NoReplyError("replied before it had read the question")
        if ended and rest:
            raise _NoReplyError("wrote more than one line; a reply is one line, and nothing else")
        if ended:
            self._heard.clear()
            return line
        if len(self._heard) > LONGEST_LINE:
            raise _NoReplyError(f"wrote a line of more than {LONGEST_LINE >> 20} MiB")
        if over:
            raise _NoReplyError(self._ended())
        return None

    def _hear(self) -> bool:
        """Take what has come; False when nothing more will."""
        try:
            chunk = os.read(self._from.fileno(), _CHUNK)
        except BlockingIOError:
            return True
        self._heard += chunk
        return bool(chunk)

    def _ended(self) -> str:
        if not self._over(_GRACE):
            return "closed its output without a reply"
        code = self._process.returncode
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        return f"ended {how} before it had replied"

    def _error(self, message: str) -> CommandError:
        advice = "the conversation is as it was before; complete it once the command works"
        return CommandError(
            error("model-command", f"the model command `{self._name}` {message}", help=advice)
        )


class _NoReplyError(Exception):
    """What came is no reply; the text says what the program did."""


def request(messages: Sequence[Message], offer: Offer) -> dict[str, Any]:
    """Return what a program is asked: the whole conversation and what it may call."""
    choice = offer.choice
    return {
        "messages": [_message(one) for one in messages],
        "tools": [
            {"name": one.full_name, "description": one.about, "input_schema": one.input_schema}
            for one in offer.turn.listed
        ],
        "choice": choice.value if isinstance(choice, Use) else {"tool": choice},
        "calls": offer.calls.value,
    }


def reply_of(line: bytes) -> Reply:
    """Return the reply that a line says. Raises _NoReplyError, which is a CommandError by the time a caller sees it."""
    try:
        data: Any = json.loads(line.decode("utf-8"), parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise _NoReplyError("wrote a line that is no JSON") from None
    if not isinstance(data, dict):
        raise _NoReplyError("wrote JSON that is no object")
    if isinstance(data.get("error"), str):
        raise _NoReplyError(f"says that it failed: {data['error'][:1000]}")
    if "text" not in data and "calls" not in data:
        raise _NoReplyError("wrote an object with neither `text` nor `calls`")
    text, calls = data.get("text") or "", data.get("calls") or []
    if not isinstance(text, str):
        raise _NoReplyError("wrote a `text` that is no text")
    if not isinstance(calls, list) or len(calls) > MOST_CALLS:
        raise _NoReplyError(f"wrote `calls` that are no list of at most {MOST_CALLS}")
    return Reply(text, tuple(_call(one) for one in calls), provider=PROVIDER)


def _call(data: Any) -> ToolCall:
    if not isinstance(data, dict) or not isinstance(data.get("name"), str) or not data["name"]:
        raise _NoReplyError("wrote a call without a `name`")
    arguments = data.get("arguments")
    arguments = {} if arguments is None else arguments
    if not isinstance(arguments, dict):
        raise _NoReplyError("wrote a call whose `arguments` are no object")
    named = data.get("id")
    return ToolCall(data["name"], arguments, named if isinstance(named, str) else "")


def _no_number(_: str) -> Any:
    raise ValueError


def _message(message: Message) -> dict[str, Any]:
    if isinstance(message, Said):
        return {"role": "user", "text": message.text}
    if isinstance(message, Reply):
        calls = [{"id": one.id, "name": one.name, "arguments": one.arguments} for one in message.calls]
        return {"role": "assistant", "text": message.text, "calls": calls}
    return _results(message)


def _results(message: Answered) -> dict[str, Any]:
    return {"role": "tool", "results": [_result(one) for one in message.outcomes]}


def _result(outcome: Outcome) -> dict[str, Any]:
    call = outcome.call
    return {
        "id": "" if call is None else call.id,
        "name": "" if call is None else call.name,
        "text": outcome.text,
        "is_error": outcome.is_error,
        "attachments": [
            {"name": one.name, "media_type": one.media_type, "base64": base64.b64encode(one.data).decode()}
            for one in outcome.attachments
        ],
    }
