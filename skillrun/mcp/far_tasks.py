"""Far tasks: what another server works at behind a call it has answered, as a Task of ours (SEP-2663, 2026-07-28).

The call waits as for any other task, in a conversation without a process; questions in the middle of the work are
questions of the call. The server can't be made to end its work: a cancel says so and is all there is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

import mcp_types as types
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from pydantic import ConfigDict, Field, ValidationError

from skillrun.mcp.relay import answer_of, question_from
from skillrun.tools.asking import InputRequiredError, current_answers
from skillrun.tools.outcome import Outcome, ToolError, clean, error_of
from skillrun.tools.task import Status, Task, came_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

EXTENSION: Final = "io.modelcontextprotocol/tasks"
_LONGEST: Final = 1_000  # characters of what a server says about its work
_SHORTEST_POLL, _LONGEST_POLL = 0.2, 300.0  # seconds; a server's own wish is kept within


class Created(types.Result):
    """A call that was answered with a task."""

    model_config = ConfigDict(populate_by_name=True, extra="ignore")
    result_type: Literal["task"] = Field(alias="resultType")
    task_id: str = Field(alias="taskId", min_length=1, max_length=512)
    status: str = "working"
    status_message: str | None = Field(default=None, alias="statusMessage")
    poll_interval_ms: float | None = Field(default=None, alias="pollIntervalMs")


class Detail(types.Result):
    """A task as `tasks/get` tells it."""

    model_config = ConfigDict(populate_by_name=True, extra="ignore")
    status: str
    status_message: str | None = Field(default=None, alias="statusMessage")
    poll_interval_ms: float | None = Field(default=None, alias="pollIntervalMs")
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    input_requests: dict[str, Any] = Field(default_factory=dict, alias="inputRequests")


class Named(types.RequestParams):
    """Which task is meant."""

    model_config = ConfigDict(populate_by_name=True)
    task_id: str = Field(alias="taskId")


class Answers(Named):
    """What was answered to the questions of a task."""

    input_responses: dict[str, Any] = Field(alias="inputResponses")


class Get(types.Request[Named, Literal["tasks/get"]]):
    """Ask how far a task is."""

    method: Literal["tasks/get"] = "tasks/get"


class Update(types.Request[Answers, Literal["tasks/update"]]):
    """Answer the questions of a task."""

    method: Literal["tasks/update"] = "tasks/update"


class Cancel(types.Request[Named, Literal["tasks/cancel"]]):
    """Say that a task is not wanted any more."""

    method: Literal["tasks/cancel"] = "tasks/cancel"


class Handed(types.CallToolResult):
    """A task in the place of a result; only this process makes one, so no server can pass a result off as it."""

    created: Created


class FarTasks(ClientExtension):
    """Says that we take tasks, and hands each on instead of waiting for it."""

    identifier = EXTENSION

    def claims(self) -> Sequence[ResultClaim[Any]]:
        """Claim results that are tasks."""

        async def hand(created: Created, _context: ClaimContext) -> types.CallToolResult:
            # As an error: what is none is held against the tool's output schema.
            return Handed(content=[], is_error=True, created=created)

        return (ResultClaim(result_type="task", model=Created, resolve=hand),)


@dataclass(frozen=True)
class FarTask(Task):
    """A task of another server; `send` reaches it, None where the server is not connected."""

    send: Callable[[types.Request[Any, Any], type[Any]], Any] | None = field(
        default=None, compare=False, repr=False
    )

    def refresh(self) -> FarTask:
        """Ask the server how far it is."""
        return self.told(self.detail())

    def cancel(self) -> FarTask:
        """Tell the server that nobody waits any more; whether it ends the work is up to it."""
        self._sent(Cancel(params=Named(taskId=self.name)), types.EmptyResult)
        return FarTask(Status.CANCELLED, self.message, self.data, self.poll_interval, send=self.send)

    @property
    def name(self) -> str:
        """The server's name for it."""
        return str(self.data.get("task"))

    def detail(self) -> Detail:
        """Return the task as the server tells it. Raises ToolError."""
        found: Detail = self._sent(Get(params=Named(taskId=self.name)), Detail)
        return found

    def told(self, detail: Detail) -> FarTask:
        """Return the task with what the server has told now."""
        status = Status.INPUT_REQUIRED if detail.status == Status.INPUT_REQUIRED.value else Status.WORKING
        return far_task(self.name, status, detail.status_message, detail.poll_interval_ms, send=self.send)

    def answer(self, detail: Detail) -> None:
        """Answer what the server asks in the middle of its work. Raises Asked for what nobody has answered yet."""
        answers = current_answers()
        responses: dict[str, Any] = {}
        for key, request in sorted(detail.input_requests.items()):
            question = question_from(key, _elicitation(request))
            if answers is None:
                raise InputRequiredError(question)
            responses[key] = answer_of(answers.give(question)).model_dump(
                by_alias=True, mode="json", exclude_none=True
            )
        if responses:
            self._sent(Update(params=Answers(taskId=self.name, inputResponses=responses)), types.EmptyResult)

    def _sent(self, request: types.Request[Any, Any], result: type[Any]) -> Any:
        if self.send is None:
            raise ToolError("the server that works at it is not connected")
        return self.send(request, result)


def far_task(name: str, status: Status, message: str | None, poll_ms: float | None, *, send: Any) -> FarTask:
    """Return a task of another server, in its words, within bounds."""
    poll = None
    if poll_ms is not None and poll_ms == poll_ms:  # noqa: PLR0124 - NaN
        poll = min(max(poll_ms / 1000, _SHORTEST_POLL), _LONGEST_POLL)
    return FarTask(status, clean(message)[:_LONGEST] if message else "", {"task": name}, poll, send=send)


def carried_on(task: FarTask, outcome: Callable[[types.CallToolResult], Outcome]) -> Outcome:
    """Look how far a task is: return its result, or that it goes on. Raises ToolError, and Asked for its questions."""
    detail = task.detail()
    if detail.status == Status.COMPLETED.value:
        try:
            return outcome(types.CallToolResult.model_validate(detail.result or {}))
        except ValidationError:
            raise ToolError("the server's result is none") from None
    if detail.status == Status.FAILED.value:
        said = str((detail.error or {}).get("message", "")) or detail.status_message or "no reason was told"
        return error_of("failed", clean(said)[:_LONGEST])
    if detail.status == Status.CANCELLED.value:
        return error_of("cancelled", "the server ended it")
    if detail.status == Status.INPUT_REQUIRED.value:
        task.answer(detail)
    return came_of(task.told(detail))


def load(state: Mapping[str, Any], send: Any) -> FarTask:
    """Return the task that a state describes."""
    return FarTask(
        Status(state["status"]), state["message"], state["data"], state["poll_interval"], send=send
    )


def _elicitation(request: Any) -> types.ElicitRequestParams:
    try:
        return types.ElicitRequest.model_validate(request).params
    except ValidationError:
        raise ToolError("the server asks for something that is no question to a person") from None
