"""Base: what the adapters share. Each writes the whole conversation in its provider's words, and reads one reply."""

from __future__ import annotations

import abc
import json
import logging
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from skillrun.conversation.messages import Answered, Reply
from skillrun.conversation.model import Use
from skillrun.conversation.transcript import faults
from skillrun.errors import SkillrunError, UsageError
from skillrun.problem import error
from skillrun.tools.outcome import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from skillrun.conversation.messages import Message
    from skillrun.conversation.model import Offer
    from skillrun.tools.outcome import ToolCall

log: Final = logging.getLogger("skillrun.conversation")
NOTHING: Final = "(nothing)"
"""What stands for a text without a word: Anthropic refuses an empty one, and would refuse it again in every request."""
_NAMED: Final = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME: Final = 64


class ModelError(SkillrunError):
    """The provider answered, and gave no whole reply."""

    @classmethod
    def of(cls, provider: str, message: str) -> ModelError:
        """Return the error with what a person can do about it."""
        advice = "the conversation is as it was before; ask the model again"
        return cls(error("model-reply", f"{provider}: {message}", help=advice))


class Adapter(abc.ABC):
    """A model behind a client that the caller made: called with the conversation, it returns the next reply.

    `system` is the system prompt. `stream` is told each piece of text as it comes; the reply is the same without it.
    `strict` and `native_search` are those of `Turn.definitions`. `options` go into every request as they are, and
    stand over what the adapter would write. What the client raises is not caught.
    """

    provider: ClassVar[str]

    def __init__(
        self,
        client: Any,
        *,
        model: str,
        system: str | None = None,
        stream: Callable[[str], object] | None = None,
        strict: bool = False,
        native_search: bool = True,
        **options: Any,
    ) -> None:
        self.client = client
        self.model = model
        self.system = system
        self.stream = stream
        self.definition_options = {"strict": strict, "native_search": native_search}
        self.options = options

    def __call__(self, messages: Sequence[Message], offer: Offer, /) -> Reply:
        """Ask the model. Raises UsageError for calls without outcomes and for a choice that can't be offered."""
        written = self.written(messages)
        if log.isEnabledFor(logging.DEBUG):
            for fault in faults(self.provider, written):
                log.debug("%s will refuse this: %s", self.provider, fault)
        definitions = offer.definitions(self.provider, **self.definition_options)
        # A choice without tools is refused by every API.
        tools = {"tools": definitions, **self._choice(offer, definitions)} if definitions else {}
        if not definitions and offer.choice not in (Use.AUTO, Use.NONE):
            raise _choice_error("there are no tools, and a call is required", "offer some, or let it be AUTO")
        return self._ask({"model": self.model, **self._body(written), **tools, **self.options})

    @abc.abstractmethod
    def written(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        """Return a conversation as the provider wants it. Raises UsageError for calls without outcomes."""

    @abc.abstractmethod
    def _body(self, written: list[dict[str, Any]]) -> dict[str, Any]: ...

    @abc.abstractmethod
    def _choice(self, offer: Offer, definitions: list[dict[str, Any]]) -> dict[str, Any]: ...

    @abc.abstractmethod
    def _ask(self, request: dict[str, Any]) -> Reply: ...


def paired(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield messages, each outcome with the id of its call and a text that every API takes.

    Raises UsageError where calls and outcomes are not one for one: a provider would refuse the whole request.
    """
    waiting: tuple[ToolCall, ...] = ()
    for message in messages:
        if isinstance(message, Answered):
            if not message.outcomes or len(message.outcomes) != len(waiting):
                raise _unpaired(f"there are {len(message.outcomes)} outcomes for {len(waiting)} calls")
            pairs = zip(message.outcomes, waiting, strict=True)
            waiting = ()
            yield Answered(tuple(replace(one, text=clean(one.text), call=call) for one, call in pairs))
            continue
        if waiting:
            break
        waiting = message.calls if isinstance(message, Reply) else ()
        yield message
    if waiting:
        raise _unpaired("not answered: " + ", ".join(f"`{one.name}`" for one in waiting))


def worded(text: str) -> str:
    """Return a text that every API takes."""
    return clean(text) if text.strip() else NOTHING


def stable(raw: Any) -> Any:
    """Return JSON data without half characters, which no request can carry back."""
    return json.loads(json.dumps(raw, ensure_ascii=False).encode("utf-8", "replace"))


def joined_name(call: ToolCall) -> str:
    """Return the name of a call for an API without namespaces: the namespace and the name, as tools are defined there."""
    spaced = call.namespace is None or call.name.startswith(f"{call.namespace}_")
    return fitted_name(call.name if spaced else f"{call.namespace}_{call.name}")


def fitted_name(name: str) -> str:
    """Return a name that every API takes back. Models invent names such as `functions.read`, and no API takes those."""
    return _NAMED.sub("_", name)[:_LONGEST_NAME] or "_"


def as_text(arguments: Any) -> str:
    """Return arguments as the text that OpenAI wants; what was no JSON stays as it came."""
    written = {} if arguments is None else arguments
    text = written if isinstance(written, str) else json.dumps(written, ensure_ascii=False)
    return text.encode("utf-8", "replace").decode()


def as_object(arguments: Any) -> dict[str, Any]:
    """Return arguments as the object that Anthropic wants; what is none is put into one."""
    if isinstance(arguments, str):
        try:
            read = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            read = None
        arguments = arguments if read is None else read
    if arguments is None:
        return {}
    return dict(stable(arguments)) if isinstance(arguments, dict) else {"arguments": stable(arguments)}


def forced(choice: str, names: Iterable[str]) -> str:
    """Return the name of the one tool that has to be called. Raises UsageError when it is not among those offered."""
    known = list(names)
    if choice not in known:
        raise _choice_error(
            f"the tool `{choice}` has to be called, and is not offered",
            "there are " + ", ".join(f"`{one}`" for one in known[:20]),
        )
    return choice


def unforceable(choice: str) -> UsageError:
    """Return the error for a tool in a namespace where the API can't force one."""
    return _choice_error(
        f"the tool `{choice}` is in a namespace, and the Responses API can't force such a tool",
        "require any call (Use.REQUIRED), of a turn with this tool alone",
    )


def _choice_error(message: str, advice: str) -> UsageError:
    return UsageError(error("tool-choice", message, help=advice))


def _unpaired(message: str) -> UsageError:
    advice = "every call of a reply needs one outcome, in the message after it"
    return UsageError(error("calls-unanswered", message, help=advice))
