"""Approval: a person's word for one call, asked of the client before anything starts.

What was agreed to is bound to the tool's identity, the exact arguments, the version of the skill and the grant,
and is compared with what is about to start when it is planned, so nothing can change in between. It is good for
one call. In the era of 2026-07-28 the client brings its answer with the same call made once more; what it echoes
is sealed and bound to the request by the SDK's boundary (facts/mcp 1, elicitation).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from skillrun.report.escape import escape
from skillrun.report.words import permission
from skillrun.tools import terms
from skillrun.tools.script_tool import ScriptTool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp.server.context import ServerRequestContext

    from skillrun.tools.tool import Tool

KEY: Final = "approval"
_LONGEST: Final = 4_000  # characters of the arguments that are shown; a digest stands for the rest
_MOST_USED: Final = (
    10_000  # remembered answers; the seal's age is 10 minutes, so older ones are refused by it
)
PATIENCE: Final = 600.0
"""Seconds that a person gets to answer, as in the other era, where the seal is good for as long."""
MOST_OPEN: Final = 256
"""Questions that are open at a time: a client can leave without closing them."""
_FORM: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "agree": {
            "type": "boolean",
            "title": "Run it once",
            "description": "Yes runs the script once with exactly these arguments.",
            "default": False,
        }
    },
    "required": ["agree"],
}


class RefusedError(Exception):
    """Nobody agreed; the message is for the model."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What one call would be: a digest of all that was agreed to, and the words for a person."""

    digest: str
    words: str


def terms_of(tool: Tool, arguments: dict[str, Any]) -> Terms:
    """Return the terms of a call with checked arguments; looks at the disk. Raises SkillrunError as a run does."""
    shown = _shown(arguments)
    if not isinstance(tool, ScriptTool):
        digest = terms.terms_of(tool, arguments).digest
        return Terms(digest, f"May `{escape(tool.full_name)}` be called?\n\n{shown}")
    subject = tool.subject
    ready = tool.preview(arguments).ready
    granted = [permission(item.capability, item.value) for item in ready.grant.granted]
    rights = "\n".join(f"  {one}" for one in granted) or "  nothing beyond what every run may"
    words = (
        f"May the script `{escape(subject.script.name)}` of the skill `{escape(subject.skill.key or '')}` run?\n"
        f"It lies in {escape(str(subject.skill.path))}, version {ready.digest[:19]}.\n\n{shown}\n\n"
        f"It may:\n{rights}\n\nThis is good for one call with exactly these arguments."
    )
    return Terms(terms.of_ready(tool, arguments, ready).digest, words)


class Approvals:
    """Asks, and remembers which answers were used."""

    def __init__(self) -> None:
        self._used: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()
        self._open = 0

    async def ask(
        self, ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams, wanted: Terms
    ) -> types.InputRequiredResult | None:
        """Return None when a person agrees, or the question for a client that asks by itself.

        Raises RefusedError when nobody agrees or, in the era of the handshake, nobody can be asked; in the other
        era that is the MCPError which the protocol has for it.
        """
        modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        if not _can_ask(ctx.session.client_capabilities):
            told = "a person must agree to this call, and this client can't ask one"
            if modern:
                needed: dict[str, Any] = {"requiredCapabilities": {"elicitation": {"form": {}}}}
                raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, told, needed)
            raise RefusedError(told)
        question = types.ElicitRequest(
            params=types.ElicitRequestFormParams(message=wanted.words, requested_schema=_FORM)
        )
        if not modern:
            _check(await self._answer(ctx, wanted))
            return None
        given = (params.input_responses or {}).get(KEY)
        state = sealed_state(params.request_state)
        if given is None or state is None or "terms" not in state:
            nonce = secrets.token_urlsafe(16)
            sealed = json.dumps({"nonce": nonce, "terms": wanted.digest})
            return types.InputRequiredResult(input_requests={KEY: question}, request_state=sealed)
        if state["terms"] != wanted.digest:
            raise RefusedError("what was agreed to has changed since; call it again")
        self.use(state["nonce"])
        _check(given)
        return None

    async def _answer(self, ctx: ServerRequestContext[Any, Any], wanted: Terms) -> types.ElicitResult:
        with self.opened():
            return await ctx.session.elicit_form(wanted.words, _FORM, related_request_id=ctx.request_id)

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Keep a question open in this block, for a while. Raises RefusedError for one too many, and when nobody answers."""
        if self._open >= MOST_OPEN:
            raise RefusedError("a person must be asked, and too many questions are open")
        self._open += 1
        try:
            with anyio.fail_after(PATIENCE):
                yield
        except TimeoutError:
            raise RefusedError("a person was asked, and nobody answered in time") from None
        finally:
            self._open -= 1

    def use(self, nonce: str) -> None:
        """Take a state that a client has echoed; it is good for one call. Raises RefusedError for one that was taken."""
        with self._lock:
            if nonce in self._used:
                raise RefusedError("this answer was used already; call it again")
            self._used[nonce] = None
            while len(self._used) > _MOST_USED:
                self._used.popitem(last=False)


def _can_ask(capabilities: types.ClientCapabilities | None) -> bool:
    """Whether a client shows forms; one that declares neither kind means forms, as before 2025-11-25."""
    asks = capabilities.elicitation if capabilities is not None else None
    return asks is not None and (asks.form is not None or asks.url is None)


def _check(answer: Any) -> None:
    if not isinstance(answer, types.ElicitResult):
        raise RefusedError("a person must agree to this call, and the client's answer is none")
    content = answer.content or {}
    if answer.action != "accept" or content.get("agree") is not True:
        raise RefusedError("a person must agree to this call, and did not")


def sealed_state(state: str | None) -> dict[str, Any] | None:
    """Read what the boundary has unsealed: it was written by this process, for this very request."""
    if state is None:
        return None
    found: dict[str, Any] = json.loads(state)
    return found


def _shown(arguments: dict[str, Any]) -> str:
    text = json.dumps(arguments, ensure_ascii=False)
    shown = escape(text[:_LONGEST])
    if len(text) > _LONGEST:
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        shown += f" … and {len(text) - _LONGEST} characters more, sha256 of all {digest}"
    return f"Arguments: {shown}"
