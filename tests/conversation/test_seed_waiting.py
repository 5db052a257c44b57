"""The seeds' examples of approval, pausing, asking and long work (seeds 001 and 004), each as it is told there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from talking import AskTeam, Script, calls, one_waiting, outcomes, talk

from skillrun.conversation.conversation import Conversation, PendingCallsError, Progress
from skillrun.conversation.sqlite import SqliteStore
from skillrun.conversation.transitions import AlreadyDecidedError
from skillrun.tools.box import Toolbox
from skillrun.tools.outcome import ToolCall
from skillrun.tools.task import Status, Task
from skillrun.tools.tool import Tool, tool

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from skillrun.conversation.store import Store


class IssueRefund(Tool):
    """Gives money back."""

    requires_approval = True

    def execute(self, order_id: str) -> str:
        """Do it."""
        self.owner.append(order_id)
        return f"refunded {order_id}"


REFUND = calls(("issue_refund", {"order_id": "A1"}))


def test_issue_refund_waits_and_is_made_once_after_a_yes(store: Store) -> None:
    """`complete` returns cleanly while nobody has decided, as often as it is called; after the word it is made, once."""
    made: list[str] = []
    refund = IssueRefund(owner=made)
    conversation = talk([refund], [REFUND, "It is done."], store=store)
    assert conversation.ask("refund A1").progress is Progress.WAITING
    assert conversation.complete().progress is Progress.WAITING
    assert made == []
    with pytest.raises(PendingCallsError):
        conversation.ask("and now?")
    entry = one_waiting(conversation)
    conversation.desk.approve(entry.key, digest=entry.digest)
    assert made == []
    other = talk([refund], [REFUND, "It is done."], store=store)
    assert other.complete().text == "It is done."
    assert made == ["A1"]
    assert other.ask("again?").progress is Progress.DONE
    assert made == ["A1"]


def test_a_no_is_a_result_that_the_model_reads(store: Store) -> None:
    """A denied call is answered with the refusal and its reason; what needed nobody is done meanwhile."""
    made: list[str] = []
    look = tool(lambda: "looked", name="look")
    reply = calls(("issue_refund", {"order_id": "A1"}), ("look", {}))
    conversation = talk([IssueRefund(owner=made), look], [reply, "I see."], store=store)
    standing = conversation.ask("refund A1")
    assert [one.call.name for one in standing.waiting] == ["issue_refund"]
    conversation.desk.deny("1.0", reason="too much \x1b[2J money")
    assert conversation.complete().text == "I see."
    first, second = outcomes(conversation)
    assert first.is_error
    assert first.text.endswith("a person said no to this call; it was not made: too much  money")
    assert second.text == "looked"
    assert made == []
    with pytest.raises(AlreadyDecidedError):
        conversation.desk.approve("1.0")


def test_a_resolver_is_asked_many_times_and_never_at_definition(store: Store) -> None:
    """True makes the call, False denies it, None leaves it waiting; it is asked only once a call is there."""
    asked: list[str] = []
    words: dict[str, bool | None] = {}

    def status(call: ToolCall) -> bool | None:
        asked.append(call.arguments["order_id"])
        return words.get(call.arguments["order_id"])

    made: list[str] = []
    refund = IssueRefund(owner=made)
    refund.approval_resolver = status
    box = Toolbox([refund])
    assert asked == []
    reply = calls(*(("issue_refund", {"order_id": one}) for one in ("yes", "no", "later")))
    conversation = talk([], [reply, "over"], box=box, store=store)
    conversation.say("go")
    conversation.step()
    assert asked == []
    words.update(yes=True, no=False)
    conversation.complete()
    conversation.complete()
    conversation.complete()
    assert made == ["yes"]
    assert asked.count("later") == 3
    assert one_waiting(conversation).call.arguments == {"order_id": "later"}
    words["later"] = True
    assert conversation.complete().text == "over"
    assert made == ["yes", "later"]
    assert outcomes(conversation)[1].is_error


@pytest.mark.parametrize("answer", [1, "yes", [True], RuntimeError("no network")])
def test_what_is_no_plain_yes_from_a_resolver_is_no_word(answer: Any) -> None:
    """Only True and False are words; anything else, an exception too, leaves the call waiting."""
    made: list[str] = []

    def status(_: ToolCall) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    refund = IssueRefund(owner=made)
    refund.approval_resolver = status
    conversation = talk([refund], [REFUND, "over"])
    assert conversation.ask("go").progress is Progress.WAITING
    assert conversation.complete().progress is Progress.WAITING
    assert made == []


def test_approval_may_depend_on_the_arguments(store: Store) -> None:
    """A tool that decides from a call's arguments: small ones are made, large ones wait; a failing question waits too."""

    class Transfer(Tool):
        """Moves money."""

        def needs_approval(self, call: ToolCall, arguments: Mapping[str, Any]) -> bool:
            """Large ones do."""
            return bool(1000 // arguments["amount"] < 10)

        def execute(self, amount: int) -> str:
            """Move it."""
            return f"moved {amount}"

    reply = calls(*(("transfer", {"amount": one}) for one in (5, 500, 0)))
    standing = talk([Transfer], [reply, "over"], store=store).ask("go")
    assert [one.call.arguments["amount"] for one in standing.waiting] == [500, 0]


@dataclass
class Runs:
    """The sub-agents of the seed."""

    left: dict[str, int] = field(default_factory=dict)
    cancelled: list[str] = field(default_factory=list)


class SubAgentTask(Task):
    """A task of a class of its own."""

    runs: Runs

    def refresh(self) -> Task:
        """Look at it."""
        return SubAgentTask(Status.WORKING, "Still working", self.data, 5.0)

    def cancel(self) -> Task:
        """Stop it."""
        SubAgentTask.runs.cancelled.append(self.data["run_id"])
        return self


class RunSubAgent(Tool):
    """Hands a job to a sub-agent."""

    def execute(self, job: str) -> Any:
        """Start it."""
        self.owner.left[job] = 2
        return Task(Status.INPUT_REQUIRED, "Waiting for approval", {"run_id": job})

    def resume(self, task: Task, job: str) -> Any:
        """Carry it on."""
        assert isinstance(task, SubAgentTask)
        assert task.data["run_id"] == job
        self.owner.left[job] -= 1
        return f"answer to {job}" if not self.owner.left[job] else task

    def task(self, state: Mapping[str, Any], *, tool_call: ToolCall | None = None) -> Task:
        """Make one of our own."""
        assert tool_call is not None
        SubAgentTask.runs = self.owner
        return SubAgentTask.load(state)


JOB = calls(("run_sub_agent", {"job": "pricing"}), ("run_sub_agent", {"job": "footer"}))


def test_run_sub_agent_pauses_and_is_resumed_once_a_complete(store: Store) -> None:
    """The task is there to be read; each `complete` resumes each paused call once; then the model carries on."""
    runs = Runs()
    conversation = talk([RunSubAgent(owner=runs)], [JOB, "deployed"], store=store)
    assert conversation.ask("Deploy the new pricing page").progress is Progress.WAITING
    task = conversation.tasks()[0]
    assert (task.status, task.message) == (Status.INPUT_REQUIRED, "Waiting for approval")
    assert isinstance(task, SubAgentTask)
    assert [one.claim for one in conversation.waiting()] == [None, None]
    assert conversation.complete().progress is Progress.WAITING
    assert runs.left == {"pricing": 1, "footer": 1}
    other = talk([RunSubAgent(owner=runs)], [JOB, "deployed"], store=store)
    assert other.complete().text == "deployed"
    assert [one.text for one in outcomes(other)] == ["answer to pricing", "answer to footer"]


def test_a_task_is_refreshed_and_cancelled_as_its_own_class(store: Store) -> None:
    """`refresh` asks the subclass and keeps what it says; `cancel` calls its cancel for every task and drops the calls."""
    runs = Runs()
    conversation = talk([RunSubAgent(owner=runs)], [JOB, "over"], store=store)
    conversation.ask("go")
    assert [one.message for one in conversation.refresh()] == ["Still working"] * 2
    assert [one.message for one in conversation.tasks()] == ["Still working"] * 2
    assert runs.left == {"pricing": 2, "footer": 2}
    assert conversation.complete().look_again == 5.0
    conversation.cancel()
    assert sorted(runs.cancelled) == ["footer", "pricing"]
    assert conversation.waiting() == ()
    assert all("cancelled" in one.text for one in outcomes(conversation))
    assert conversation.complete().text == "over"


def test_a_task_that_can_not_be_cancelled_keeps_no_other_from_it(caplog: pytest.LogCaptureFixture) -> None:
    """One task's own cancel fails: that is logged, and every other call is ended all the same."""

    class Stubborn(RunSubAgent):
        """A tool whose tasks can't be made anew."""

        tool_name = "run_sub_agent"

        def task(self, state: Mapping[str, Any], *, tool_call: ToolCall | None = None) -> Task:
            """Fail."""
            raise LookupError("no such run")

    conversation = talk([Stubborn(owner=Runs())], [JOB, "over"])
    conversation.ask("go")
    conversation.cancel()
    assert conversation.waiting() == ()
    assert "was not cancelled" in caplog.text


def test_a_task_that_is_gone_is_an_error_the_model_reads() -> None:
    """What a tool's `task` raises when a call is carried on is a result, and no exception of `complete`."""

    class Forgetful(RunSubAgent):
        """A tool that lost its records."""

        tool_name = "run_sub_agent"

        def task(self, state: Mapping[str, Any], *, tool_call: ToolCall | None = None) -> Task:
            """Fail."""
            raise LookupError("no such run")

    conversation = talk([Forgetful(owner=Runs())], [JOB, "over"])
    conversation.ask("go")
    assert conversation.complete().text == "over"
    assert [one.text for one in outcomes(conversation)] == ["Error (run_sub_agent): no such run"] * 2


def test_it_pauses_in_one_process_and_ends_in_another(file: Path) -> None:
    """Approval, question and task over a file: each step is taken by a store that was opened anew."""
    runs = Runs()
    tools = [IssueRefund(owner=[]), AskTeam(owner=[]), RunSubAgent(owner=runs)]
    reply = calls(("issue_refund", {"order_id": "A1"}), ("ask_team", {"question": "When?"}),
                  ("run_sub_agent", {"job": "x"}))  # fmt: skip

    def opened() -> Conversation:
        return Conversation(Toolbox(tools), Script([reply, "over"]), store=SqliteStore(file), name="c")

    opened().ask("go")
    opened().desk.approve("1.0")
    opened().desk.answer("1.1", {"answer": "now"})
    opened().complete()
    opened().desk.decline("1.1")
    assert opened().complete().text == "over"
    assert [one.is_error for one in outcomes(opened())] == [False, False, False]
