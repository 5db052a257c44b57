"""Asking: the questions of a tool, asked of the client. The call is made again with each answer, from its start.

In the era of the handshake the client is asked while the call is open. In that of 2026-07-28 it makes the call once
more with its answer; what was answered before is in the state that it echoes, sealed and bound to the request.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from skillrun.mcp.approval import RefusedError, sealed_state
from skillrun.report.escape import escape
from skillrun.tools.arguments import ArgumentsError, check
from skillrun.tools.asking import Answer, Question, Reaction, Settled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp.server.context import ServerRequestContext

    from skillrun.mcp.approval import Approvals

    Context = ServerRequestContext[Any, Any]

_PLAIN: Final = frozenset({"string", "number", "integer", "boolean"})
# What a form may say of a field (MCP 2026-07-28, elicitation); anything else is left out or can't be shown.
_TOLD: Final = frozenset(
    {"type", "title", "description", "enum", "default", "minimum", "maximum", "minLength", "maxLength"}
)
_FORMATS: Final = frozenset({"email", "uri", "date", "date-time"})


@dataclass(frozen=True, slots=True)
class Asking:
    """What a client has answered to the questions of one call so far, and whether it was agreed to, to what terms."""

    settled: tuple[Settled, ...] = ()
    agreed: str | None = None

    def with_answer(self, question: Question, result: Any) -> Asking:
        """Add an answer. Raises RefusedError for one that does not fit the question."""
        return Asking((*self.settled, Settled(question, _answer(question, result))), self.agreed)


def can_ask(ctx: Context) -> bool:
    """Whether the client shows forms or pages to a person."""
    capabilities = ctx.session.client_capabilities
    return capabilities is not None and capabilities.elicitation is not None


def begun(ctx: Context, params: types.CallToolRequestParams, approvals: Approvals) -> Asking:
    """Return what was answered when the call came before; each state is good for one call. Raises RefusedError."""
    state = sealed_state(params.request_state)
    if state is None or "question" not in state or ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return Asking()
    approvals.use(state["nonce"])
    question = _question(state["question"])
    settled = tuple(
        Settled(_question(one), Answer(Reaction(one["reaction"]), one["values"])) for one in state["settled"]
    )
    given = (params.input_responses or {}).get(question.key)
    return Asking(settled, state["agreed"]).with_answer(question, given)


async def put(
    ctx: Context, asking: Asking, question: Question, tool: str, approvals: Approvals
) -> Asking | types.InputRequiredResult:
    """Ask the client: return what is answered then, or the result by which a client of the newer era asks by itself.

    Raises RefusedError when it can't be asked this, or nobody answers in time.
    """
    told = f"The tool `{escape(tool)}` asks:\n\n{escape(question.message)}"
    request = _request(ctx, question, told)
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        state = {
            "nonce": secrets.token_urlsafe(16),
            "question": _data(question),
            "settled": [
                {
                    **_data(one.question),
                    "reaction": one.answer.reaction.value,
                    "values": dict(one.answer.values),
                }
                for one in asking.settled
            ],
            "agreed": asking.agreed,
        }
        return types.InputRequiredResult(
            input_requests={question.key: types.ElicitRequest(params=request)},
            request_state=json.dumps(state),
        )
    with approvals.opened():
        if isinstance(request, types.ElicitRequestURLParams):
            result = await ctx.session.elicit_url(
                told, request.url, request.elicitation_id or "", related_request_id=ctx.request_id
            )
        else:
            result = await ctx.session.elicit_form(
                told, request.requested_schema, related_request_id=ctx.request_id
            )
    return asking.with_answer(question, result)


def _request(
    ctx: Context, question: Question, told: str
) -> types.ElicitRequestFormParams | types.ElicitRequestURLParams:
    capabilities = ctx.session.client_capabilities
    can = capabilities.elicitation if capabilities is not None else None
    if can is None:
        raise RefusedError("it asks a person, and this client can't ask one")
    if question.url is not None:
        if can.url is None:
            raise RefusedError("it asks a person to visit a page, and this client shows none")
        # The page stands in the words too: it is a stranger's, and nobody should go there without having read it.
        return types.ElicitRequestURLParams(
            message=f"{told}\n\nThe page: {escape(question.url)}",
            url=question.url,
            elicitation_id=secrets.token_urlsafe(16),
            mode="url",
        )
    if can.form is None and can.url is not None:
        raise RefusedError("it asks a person to fill in a form, and this client shows none")
    return types.ElicitRequestFormParams(message=told, requested_schema=form_of(question), mode="form")


def form_of(question: Question) -> dict[str, Any]:
    """Return the fields of a question as a form: flat, of plain values. Raises RefusedError for one that is more."""
    properties: dict[str, Any] = {}
    for name, field in question.fields.get("properties", {}).items():
        kind = field.get("type") if isinstance(field, dict) else None
        if kind not in _PLAIN:
            raise RefusedError(f"it asks a person for `{name[:64]}`, which no form of a client can hold")
        told = {key: value for key, value in field.items() if key in _TOLD}
        if field.get("format") in _FORMATS:
            told["format"] = field["format"]
        for key in ("title", "description"):
            if key in told:
                told[key] = escape(str(told[key]))
        properties[name] = told
    return {"type": "object", "properties": properties, "required": list(question.fields.get("required", ()))}


def _answer(question: Question, result: Any) -> Answer:
    if not isinstance(result, types.ElicitResult):
        raise RefusedError("it asks a person, and the client's answer is none")
    if result.action != "accept":
        return Answer(Reaction.DECLINED)
    if not question.fields:
        return Answer(Reaction.ACCEPTED)
    try:
        return Answer(Reaction.ACCEPTED, check(dict(result.content or {}), question.fields))
    except ArgumentsError as wrong:
        told = str(wrong).replace("invalid arguments", "the answer does not fit")
        raise RefusedError(told) from None


def _data(question: Question) -> dict[str, Any]:
    return {
        "key": question.key,
        "message": question.message,
        "fields": dict(question.fields),
        "url": question.url,
    }


def _question(data: Mapping[str, Any]) -> Question:
    return Question(data["key"], data["message"], data["fields"], data["url"])
