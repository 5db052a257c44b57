"""What a person agreed to and what is about to start: when they differ, nothing runs and the person is asked again."""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from talking import Script, calls, one_waiting, outcomes, talk

from skillrun.conversation.conversation import Conversation, Progress
from skillrun.conversation.entry import State
from skillrun.conversation.sqlite import SqliteStore
from skillrun.errors import UsageError
from skillrun.tools.box import Toolbox
from skillrun.tools.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Workplace

    from skillrun.tools.script_tool import ScriptTool

ACT = """
    import argparse
    p = argparse.ArgumentParser()
    p.add_argument("--what", default="nothing")
    open("done", "a").write(p.parse_args().what + "\\n")
    print("did it")
"""
FRONT = 'fs_write: ["."]\nmetadata: {skillrun.approval: "true"}\n'
CEILING = "sandbox: {fs_read: ['${workspace}'], fs_write: ['${workspace}'], timeout: 30}"


def asked(workplace: Workplace, file: Path, arguments: dict[str, Any] | None = None) -> Conversation:
    """Bring a call of a gated script to where a person has agreed to it."""
    workplace.skill("demo", ACT, front=FRONT)
    made = carried_on(workplace, file, arguments)
    assert made.ask("go").progress is Progress.WAITING
    entry = one_waiting(made)
    assert entry.state is State.AWAITING_APPROVAL
    made.desk.approve(entry.key, digest=entry.digest)
    return made


def carried_on(
    workplace: Workplace, file: Path, arguments: dict[str, Any] | None = None, **settings: Any
) -> Conversation:
    """Return the same conversation as another process sees it."""
    runner = workplace.runner(CEILING if not workplace.ceiling.exists() else None, **settings)
    model = Script([calls(("demo__act", arguments or {"what": "a"})), "over"])
    return Conversation(Toolbox(runner=runner), model, store=SqliteStore(file), name="c")


def more_bytes(workplace: Workplace) -> None:
    """Change the script."""
    path = workplace.workspace / "skills/demo/scripts/act.py"
    path.write_text(path.read_text() + "\n# changed\n")


def other_file(workplace: Workplace) -> None:
    """Change a file beside the script."""
    (workplace.workspace / "skills/demo/scripts/helper.txt").write_text("x")


def more_rights(workplace: Workplace) -> None:
    """Have SKILL.md ask for more."""
    workplace.skill("demo", ACT, front=FRONT.replace("metadata", 'fs_read: ["data"]\nmetadata'))


def wider_ceiling(workplace: Workplace) -> None:
    """Have the operator's file allow less: another grant."""
    workplace.ceiling.write_text(
        CEILING.replace("fs_write: ['${workspace}']", "fs_write: ['${workspace}/out']")
    )


def other_interpreter(workplace: Workplace) -> None:
    """Have the operator's file name another Python."""
    other = workplace.home / "python3"
    shutil.copy("/usr/bin/python3", other)
    workplace.ceiling.write_text(CEILING + f"\ninterpreters: {{python: {other}}}")


CHANGES: dict[str, tuple[Callable[[Workplace], None], str]] = {
    "skill bytes": (more_bytes, "version"),
    "a file of the skill": (other_file, "version"),
    "the grant in SKILL.md": (more_rights, "granted"),
    "the ceiling": (wider_ceiling, "granted"),
    "the interpreter": (other_interpreter, "interpreter"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_between_the_word_and_the_run_asks_again(
    workplace: Workplace, file: Path, change: str
) -> None:
    """Another version, grant or interpreter: nothing runs, the person sees what was and what is, and has to say it anew."""
    first = asked(workplace, file)
    agreed = one_waiting(first)
    (workplace.workspace / "out").mkdir()
    (workplace.workspace / "data").mkdir()
    act, key = CHANGES[change]
    act(workplace)
    other = carried_on(workplace, file)
    assert other.complete().progress is Progress.WAITING
    entry = one_waiting(other)
    assert entry.state is State.AWAITING_APPROVAL
    assert entry.decision is None
    assert entry.digest != agreed.digest
    assert entry.terms[key] != entry.terms["before"][key]
    assert not (workplace.workspace / "done").exists()
    with pytest.raises(UsageError, match="changed since it was shown"):
        other.desk.approve(entry.key, digest=agreed.digest)
    assert one_waiting(other).state is State.AWAITING_APPROVAL
    other.desk.approve(entry.key, digest=entry.digest)
    assert other.complete().text == "over"
    assert bool(list(workplace.workspace.rglob("done"))) == (change != "the ceiling")


def test_an_unchanged_call_runs_in_another_process_without_another_word(
    workplace: Workplace, file: Path
) -> None:
    """The control: where nothing has changed another process makes the call, once."""
    asked(workplace, file)
    assert carried_on(workplace, file).complete().text == "over"
    assert (workplace.workspace / "done").read_text() == "a\n"


def test_another_workspace_asks_again(workplace: Workplace, file: Path, tmp_path: Path) -> None:
    """The word was about a workspace: in another one the same call waits again, and nothing runs there."""
    asked(workplace, file)
    other = tmp_path.resolve() / "other"
    other.mkdir()
    again = carried_on(workplace, file, workspace=other)
    assert again.complete().progress is Progress.WAITING
    entry = one_waiting(again)
    assert entry.terms["workspace"] == str(other)
    assert entry.terms["before"]["workspace"] == str(workplace.workspace)
    assert not (other / "done").exists()


def test_other_arguments_in_the_store_ask_again(workplace: Workplace, file: Path) -> None:
    """Somebody edits the arguments of an agreed call in the file: the digest no longer fits, and nothing runs."""
    made = asked(workplace, file)
    store = made.store
    assert isinstance(store, SqliteStore)
    store._database().execute("UPDATE call SET call = replace(call, '\"a\"', '\"evil\"')")
    again = carried_on(workplace, file)
    assert again.complete().progress is Progress.WAITING
    assert one_waiting(again).state is State.AWAITING_APPROVAL
    assert not (workplace.workspace / "done").exists()


def test_a_change_between_the_plan_and_the_start_asks_again(
    workplace: Workplace, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The skill is changed after the claim, before its script is planned: the last look finds it, and nothing starts."""
    made = asked(workplace, file)
    (tool,) = made._round.turn.box.tools
    told: list[str] = []
    monkeypatch.setattr(made._round.turn.box, "pool", Changing(lambda: other_file(workplace), told))
    assert made.complete().progress is Progress.WAITING
    assert told == [tool.full_name]
    entry = one_waiting(made)
    assert entry.state is State.AWAITING_APPROVAL
    assert entry.terms["version"] != entry.terms["before"]["version"]
    assert not (workplace.workspace / "done").exists()


class Changing:
    """What runs tools, with something that happens just before."""

    def __init__(self, act: Callable[[], None], told: list[str]) -> None:
        self.act = act
        self.told = told

    def runs(self, tool: ScriptTool) -> Callable[..., Any]:
        """Return what runs a tool."""

        def run(call: Any, arguments: Any) -> Any:
            self.told.append(tool.full_name)
            self.act()
            return tool.run(call, arguments)

        return run


def test_a_background_script_that_changed_asks_again_from_the_start(
    workplace: Workplace, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same in the background: the task is no more, and the new word begins the script, once."""
    made = asked(workplace, file)
    box = made._round.turn.box
    box.tools[0].background = True  # type: ignore[attr-defined]
    monkeypatch.setattr(box, "pool", Changing(lambda: other_file(workplace), []))
    made.complete()
    for _ in range(200):
        made.complete()
        if one_waiting(made).state is State.AWAITING_APPROVAL:
            break
    entry = one_waiting(made)
    assert entry.state is State.AWAITING_APPROVAL
    assert entry.task is None
    assert not (workplace.workspace / "done").exists()
    made.desk.approve(entry.key, digest=entry.digest)
    while made.complete().progress is Progress.WAITING:
        pass
    assert outcomes(made)[0].text == "did it"
    assert (workplace.workspace / "done").read_text() == "a\n"


def test_a_word_is_good_for_one_call(file: Path) -> None:
    """Two equal calls, one word: the other one still waits; and a later equal call needs a word of its own."""
    made: list[int] = []

    class Refund(Tool):
        """Give money back."""

        requires_approval = True

        def execute(self, order: int) -> str:
            """Do it."""
            made.append(order)
            return "paid"

    reply = calls(("refund", {"order": 7}), ("refund", {"order": 7}))
    conversation = talk([Refund], [reply, calls(("refund", {"order": 7})), "over"], store=SqliteStore(file))
    first, second = conversation.ask("go").waiting
    assert first.digest == second.digest
    conversation.desk.approve(first.key, digest=first.digest)
    conversation.complete()
    assert made == [7]
    conversation.desk.deny(second.key)
    conversation.complete()
    assert one_waiting(conversation).key == "2.0"
    assert made == [7]


def test_an_approval_that_expired_under_old_terms_does_not_end_the_new_question(file: Path) -> None:
    """The time for the first word is over when the call asks again: the new terms have their own time, here none."""
    conversation = talk([Odd], [calls(("odd", {})), "over"], store=SqliteStore(file))
    conversation.ask("go")
    entry = one_waiting(conversation)
    conversation.store.swap(
        entry, replace(entry, expires=conversation.here.wall() + 0.2, terms={"was": "else"})
    )
    entry = one_waiting(conversation)
    conversation.store.swap(entry, replace(entry, digest="sha256:old"))
    conversation.desk.approve(entry.key, digest="sha256:old")
    conversation.complete()
    entry = one_waiting(conversation)
    assert entry.state is State.AWAITING_APPROVAL
    assert entry.terms["before"] == {"was": "else"}
    assert entry.expires is None


class Odd(Tool):
    """A tool that wants a word."""

    requires_approval = True

    def execute(self) -> str:
        """Do nothing."""
        return "done"


def test_a_call_that_could_not_be_planned_is_asked_about_once_it_can(
    workplace: Workplace, file: Path
) -> None:
    """A skill that can't run has no terms to agree to; mended, it is shown with them and can be agreed to."""
    workplace.skill("demo", ACT, front=FRONT)
    made = carried_on(workplace, file)
    folder = workplace.workspace / "skills/demo"
    made.say("go")
    folder.rename(workplace.home / "away")
    made.step()
    entry = one_waiting(made)
    assert "problem" in entry.terms
    with pytest.raises(UsageError, match="can't be agreed to"):
        made.desk.approve(entry.key)
    (workplace.home / "away").rename(folder)
    made.complete()
    entry = one_waiting(made)
    assert entry.digest
    assert "problem" not in entry.terms
    with contextlib.suppress(UsageError):
        made.desk.approve(entry.key, digest=entry.digest)
    assert one_waiting(made).state is State.READY
