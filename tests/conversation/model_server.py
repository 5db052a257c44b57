"""A server on the loopback that speaks Anthropic Messages, OpenAI Chat Completions and Responses, each whole and streamed.

It is as strict as they are: a transcript with a fault, a choice without tools, a tool that is not there, a request that
the vendor's own types refuse, is answered with 400 in the vendor's words.
"""

from __future__ import annotations

import functools
import json
import re
import threading
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from skillrun.conversation.transcript import faults

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PATHS = {
    "/v1/messages": "anthropic",
    "/v1/chat/completions": "openai",
    "/v1/responses": "openai-responses",
}
FIELD = {"anthropic": "messages", "openai": "messages", "openai-responses": "input"}
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@dataclass(frozen=True)
class Call:
    """One call of a scripted reply; arguments that are a text are sent as they are where the API has a text."""

    name: str
    arguments: Any = field(default_factory=dict)
    id: str | None = "call_1"
    namespace: str | None = None


@dataclass(frozen=True)
class Answer:
    """What the model says next. `why` is the stop reason of Anthropic; `broken` ends a stream too early.

    `failed` is a response that failed with status 200; `last_output` says whether its last event repeats all items,
    `item_events` whether each had an event when it was done.
    `refusal` has the text come as one, and `error` is an event in the middle of a stream.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    thought: str = ""
    why: str = ""
    broken: bool = False
    failed: str = ""
    status: int = 200
    refusal: bool = False
    error: str = ""
    last_output: bool = True
    item_events: bool = True


@dataclass
class ModelServer:
    """The script of what the model says, and the requests that came."""

    answers: list[Answer | Callable[[dict[str, Any]], Answer]] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    url: str = ""

    def start(self) -> ThreadingHTTPServer:
        """Serve in a thread."""
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                owner.serve(self, PATHS[self.path], request)

            def log_message(self, *_: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        self.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return server

    def serve(self, handler: BaseHTTPRequestHandler, provider: str, request: dict[str, Any]) -> None:
        """Check a request and answer it."""
        self.requests.append(request)
        wrong = complaints(provider, request)
        if wrong:
            self.refused += wrong
            told = {"type": "invalid_request_error", "message": "; ".join(wrong)}
            send(handler, 400, "application/json", json.dumps({"type": "error", "error": told}).encode())
            return
        said = self.answers.pop(0)
        answer = said if isinstance(said, Answer) else said(request)
        if answer.status != HTTPStatus.OK:
            told = {"type": "error", "error": {"type": "api_error", "message": "out of order"}}
            send(handler, answer.status, "application/json", json.dumps(told).encode())
            return
        if not request.get("stream"):
            send(handler, 200, "application/json", json.dumps(WHOLE[provider](answer)).encode())
            return
        events = list(STREAMED[provider](answer))
        events = events[: len(events) // 2] if answer.broken else events
        send(handler, 200, "text/event-stream", "".join(events).encode())


def send(handler: BaseHTTPRequestHandler, status: int, kind: str, body: bytes) -> None:
    """Answer a request."""
    handler.send_response(status)
    handler.send_header("Content-Type", kind)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def complaints(provider: str, request: dict[str, Any]) -> list[str]:
    """Return what the vendor would refuse a request for."""
    wrong = faults(provider, request[FIELD[provider]])
    tools = request.get("tools")
    names = [one.get("name") or one["function"]["name"] for one in tools or []]
    if tools == []:
        wrong.append("tools: an empty list")
    if len(names) != len(set(names)) or not all(NAME.fullmatch(one) for one in names):
        wrong.append("tools: names are unique, and of letters, digits, `_` and `-`")
    if tools is None and ("tool_choice" in request or "parallel_tool_calls" in request):
        wrong.append("tool_choice may only be specified while providing tools")
    choice = request.get("tool_choice")
    forced = (
        choice.get("name") or choice.get("function", {}).get("name") if isinstance(choice, dict) else None
    )
    callable_ = [one for one in tools or [] if one.get("type") != "namespace"]
    if forced and forced not in [one.get("name") or one["function"]["name"] for one in callable_]:
        wrong.append(f"tool_choice: there is no tool {forced}")
    if provider == "anthropic" and not isinstance(request.get("max_tokens"), int):
        wrong.append("max_tokens: field required")
    try:
        typed(provider).validate_python(request, strict=False)
    except ValueError as refused:
        wrong.append(f"the types of the SDK: {str(refused)[:500]}")
    return wrong


@functools.cache
def typed(provider: str) -> Any:
    """Return what validates a request by the types of the vendor's SDK."""
    import pydantic

    if provider == "anthropic":
        from anthropic.types.message_create_params import MessageCreateParamsBase

        return pydantic.TypeAdapter(MessageCreateParamsBase)
    if provider == "openai":
        from openai.types.chat.completion_create_params import CompletionCreateParamsBase

        return pydantic.TypeAdapter(CompletionCreateParamsBase)
    from openai.types.responses.response_create_params import ResponseCreateParamsBase

    return pydantic.TypeAdapter(ResponseCreateParamsBase)


def text_of(arguments: Any) -> str:
    """Return arguments as OpenAI sends them."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def pieces(text: str) -> list[str]:
    """Cut a text as a stream does, anywhere."""
    return [text[at : at + 3] for at in range(0, len(text), 3)]


# Anthropic


def anthropic_message(answer: Answer) -> dict[str, Any]:
    """Return a message."""
    content: list[dict[str, Any]] = []
    if answer.thought:
        content.append({"type": "thinking", "thinking": answer.thought, "signature": "c2lnbmVk"})
    if answer.text:
        content.append({"type": "text", "text": answer.text, "citations": None})
    content += [
        {"type": "tool_use", "id": one.id, "name": one.name, "input": one.arguments} for one in answer.calls
    ]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": content,
        "stop_reason": answer.why or ("tool_use" if answer.calls else "end_turn"),
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def anthropic_stream(answer: Answer) -> Iterator[str]:
    """Yield the events of a message."""

    def event(kind: str, **data: Any) -> str:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n"

    message = anthropic_message(answer)
    yield event("message_start", message={**message, "content": [], "stop_reason": None})
    for index, block in enumerate(message["content"]):
        deltas: list[dict[str, Any]] = []
        if block["type"] == "text":
            empty = {**block, "text": ""}
            deltas = [{"type": "text_delta", "text": one} for one in pieces(block["text"])]
        elif block["type"] == "thinking":
            empty = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": one} for one in pieces(block["thinking"])]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        else:
            empty = {**block, "input": {}}
            written = pieces(json.dumps(block["input"]))
            deltas = [{"type": "input_json_delta", "partial_json": one} for one in written]
        yield event("content_block_start", index=index, content_block=empty)
        for delta in deltas:
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield event("message_delta", delta=ended, usage={"output_tokens": 1})
    yield event("message_stop")


# OpenAI Chat Completions


def chat_completion(answer: Answer) -> dict[str, Any]:
    """Return a completion."""
    message: dict[str, Any] = {
        "role": "assistant",
        "content": None if answer.refusal else answer.text or None,
        "refusal": answer.text if answer.refusal else None,
        "annotations": [],
    }
    if answer.calls:
        message["tool_calls"] = [
            {
                "id": one.id,
                "type": "function",
                "function": {"name": one.name, "arguments": text_of(one.arguments)},
            }
            for one in answer.calls
        ]
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": "tool_calls" if answer.calls else "stop",
        "logprobs": None,
    }
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


def chat_stream(answer: Answer) -> Iterator[str]:
    """Yield the chunks of a completion; the calls come side by side."""

    def chunk(delta: dict[str, Any], why: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": why}
        whole = {
            "id": "c",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": [choice],
        }
        return f"data: {json.dumps(whole)}\n\n"

    message = chat_completion(answer)["choices"][0]["message"]
    yield chunk({"role": "assistant", "content": "" if answer.text else None, "refusal": None})
    for one in pieces(answer.text):
        yield chunk({"refusal" if answer.refusal else "content": one})
    waiting = []
    for index, call in enumerate(message.get("tool_calls", [])):
        begun = {**call, "index": index, "function": {"name": call["function"]["name"], "arguments": ""}}
        yield chunk({"tool_calls": [begun]})
        waiting.append([(index, one) for one in pieces(call["function"]["arguments"])])
    while any(waiting):
        for parts in waiting:
            if parts:
                index, one = parts.pop(0)
                # Some servers repeat what they said; here of every second call.
                again = {"id": answer.calls[index].id, "type": "function"} if index % 2 else {}
                yield chunk({"tool_calls": [{"index": index, **again, "function": {"arguments": one}}]})
    yield chunk({}, "tool_calls" if answer.calls else "stop")
    yield "data: [DONE]\n\n"


# OpenAI Responses


def response(answer: Answer) -> dict[str, Any]:
    """Return a response."""
    output: list[dict[str, Any]] = []
    if answer.thought:
        output.append(
            {
                "type": "reasoning",
                "id": f"rs_{id(answer)}",
                "summary": [],
                "encrypted_content": answer.thought,
            }
        )
    if answer.text:
        part = {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}
        part = {"type": "refusal", "refusal": answer.text} if answer.refusal else part
        output.append(
            {
                "type": "message",
                "id": f"msg_{id(answer)}",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )
    for number, one in enumerate(answer.calls):
        item = {
            "type": "function_call",
            "id": f"fc_{id(answer)}_{number}",
            "call_id": one.id,
            "name": one.name,
            "arguments": text_of(one.arguments),
            "status": "completed",
        }
        output.append(item if one.namespace is None else {**item, "namespace": one.namespace})
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "failed" if answer.failed else "completed",
        "error": {"code": "server_error", "message": answer.failed} if answer.failed else None,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def response_stream(answer: Answer) -> Iterator[str]:
    """Yield the events of a response."""
    number = 0

    def event(kind: str, **data: Any) -> str:
        nonlocal number
        number += 1
        return f"event: {kind}\ndata: {json.dumps({'type': kind, 'sequence_number': number, **data})}\n\n"

    whole = response(answer)
    yield event("response.created", response={**whole, "status": "in_progress", "output": []})
    for index, item in enumerate(whole["output"]):
        place = {"item_id": item["id"], "output_index": index}
        yield event("response.output_item.added", output_index=index, item=item)
        if item["type"] == "message":
            kind = "response.refusal.delta" if answer.refusal else "response.output_text.delta"
            for one in pieces(answer.text):
                yield event(kind, **place, content_index=0, delta=one, logprobs=[])
        if item["type"] == "function_call":
            for one in pieces(item["arguments"]):
                yield event("response.function_call_arguments.delta", **place, delta=one)
        if answer.item_events:
            yield event("response.output_item.done", output_index=index, item=item)
    if answer.error:
        yield event("error", code="server_error", message=answer.error, param=None)
        return
    last = whole if answer.last_output else {**whole, "output": []}
    yield event("response.failed" if answer.failed else "response.completed", response=last)


WHOLE = {"anthropic": anthropic_message, "openai": chat_completion, "openai-responses": response}
STREAMED = {"anthropic": anthropic_stream, "openai": chat_stream, "openai-responses": response_stream}
