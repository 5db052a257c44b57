"""ScriptTool: one script of a skill, or one of its sub-commands, as a tool."""

from __future__ import annotations

import logging
import os
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from skillrun.errors import SkillError, SkillrunError
from skillrun.permissions.access import NamedPath
from skillrun.permissions.grant import Capability
from skillrun.permissions.resolve import Resolver
from skillrun.permissions.voices import listen
from skillrun.problem import At, Problem, error, warning
from skillrun.running.call import Call
from skillrun.running.listener import Listener
from skillrun.sandbox.policy import Access
from skillrun.skills.digest import digest
from skillrun.skills.interpreter import family_of
from skillrun.skills.model import Starter
from skillrun.tools.argv import words_of
from skillrun.tools.asking import InputRequiredError, current_answers
from skillrun.tools.background import Background, answers_text
from skillrun.tools.declared import declare
from skillrun.tools.events import EventSink
from skillrun.tools.hints import UNKNOWN, hints_of
from skillrun.tools.infer.read import read_script
from skillrun.tools.names import Identity, script_name, with_hash
from skillrun.tools.outcome import Outcome, ToolError
from skillrun.tools.output_files import collect
from skillrun.tools.run_text import outcome_of
from skillrun.tools.told import LONGEST_TEXT, interface_told, prose
from skillrun.tools.tool import MAX_RUN_TIME, Tool, report
from skillrun.tools.underway import underway

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from skillrun.launch.ready import Preview, Ready
    from skillrun.permissions.decide import Outline
    from skillrun.permissions.flags import Flags
    from skillrun.permissions.request import Request
    from skillrun.permissions.script_entries import ScriptEntry
    from skillrun.runner import Runner
    from skillrun.running.listener import OnOutput
    from skillrun.sandbox.backend import LaunchPlan
    from skillrun.skills.model import Script, Skill
    from skillrun.tools.hints import Hints
    from skillrun.tools.interface import Interface
    from skillrun.tools.outcome import Attachment, ToolCall
    from skillrun.tools.task import Task

log: Final = logging.getLogger("skillrun.tools")
_KINDS: Final = {
    "read": Capability.FS_READ, "write": Capability.FS_WRITE, "network": Capability.NETWORK, "env": Capability.ENV,
}  # fmt: skip
_MARGIN: Final = 32.0  # seconds beside a deadline: the grace, the start, and a busy machine (facts/agents B3)
_SHARE: Final = 500  # of them for the skill's where the script has something to say as well


@dataclass(frozen=True, slots=True)
class Subject:
    """What a tool is made from, and what its files were like at that time."""

    skill: Skill
    script: Script
    interface: Interface
    entry: ScriptEntry | None
    identity: Identity
    signs: tuple[tuple[int, ...], ...]
    text: str | None


class ScriptTool(Tool):
    """A script as a tool: it runs confined, with what the skill asked for and the operator allows, and no more.

    `flags` and `on_plan` are for who runs one call by hand: what the operator adds to it, and who is told before it starts.
    With `background` a call waits for its script as for a task, with the output so far, and no thread of the caller does.
    """

    looks = True
    asks_anew = True  # what a script asked, it has asked as it ended

    def __init__(
        self, runner: Runner, subject: Subject, request: Request, *, name: str, hints: Hints = UNKNOWN
    ) -> None:
        super().__init__()
        self.subject = subject
        self.identity = subject.identity
        self.flags: Flags | None = None
        self.on_plan: Callable[[Ready, LaunchPlan], None] | None = None
        self.background = False
        self._runner = runner
        self._name = name
        self._schema = subject.interface.schema()
        self.namespace = subject.skill.key
        self.namespace_description = prose(
            subject.skill.description or f"Scripts of {subject.skill.name or subject.skill.key}"
        )
        self.requires_approval = request.approval or _wants_word(
            request, subject.interface, runner.layers.tools.approve or ()
        )
        self.max_run_time = _longest(subject, runner) + _MARGIN
        self._background = Background(runner.jobs)
        self._hint(hints)

    @property
    def name(self) -> str:
        """The name that the model calls."""
        return self._name

    @property
    def full_name(self) -> str:
        """The same: the skill is in it already."""
        return self._name

    @property
    def about(self) -> str:
        """What the skill says about itself, then what the script does."""
        skill, interface, entry = self.subject.skill, self.subject.interface, self.subject.entry
        own = interface.description or (entry.description if entry is not None else None) or self.subject.text
        parts = [
            prose(text.strip(), _SHARE if own else LONGEST_TEXT)
            for text in [skill.description or ""]
            if text.strip()
        ]
        spelled = " ".join((self.subject.script.name, *interface.subcommand))
        if not spelled.isascii() or (skill.name and not skill.name.isascii()):
            parts.insert(0, f"{skill.name or skill.key}: {spelled}")
        if own:
            parts.append(own.strip())
        return prose("\n\n".join(parts) or spelled)

    @property
    def input_schema(self) -> dict[str, Any]:
        """What the script takes."""
        return self._schema

    def _hint(self, hints: Hints) -> None:
        self._hints = hints
        self.annotations = hints.annotations  # type: ignore[misc] # a setting of this one tool
        # Only scratch can have changed then, so a run that was lost may be made again (facts/agents B2).
        self.repeatable = bool(self.annotations["readOnlyHint"])

    def _still(self, now: Hints) -> None:
        """Raise ToolError for a run that may do more than was told of the tool: who agreed to it unasked relied on that.

        A grant depends on where paths lead, and a link can be turned behind a list of tools.
        """
        wider = self._hints | now
        if wider != self._hints:
            self._hint(wider)
            raise ToolError("what it may do was changed since its tools were listed; list them again")

    def named(self, arguments: dict[str, Any]) -> tuple[NamedPath, ...]:
        """Return the files that checked arguments name by parameters that declare an access."""
        return tuple(_named(self.subject.interface, arguments))

    def preview(self, arguments: dict[str, Any]) -> Preview:
        """Return what a run with checked arguments would be, without starting it."""
        subject = self.subject
        return self._runner.preview(
            subject.skill, subject.script.name, flags=self.flags, named=self.named(arguments)
        )

    def run(self, call: ToolCall, arguments: dict[str, Any]) -> Outcome:
        """Run the script with arguments that were checked, or start it where it runs in the background."""
        if not self.background:
            return self._run(arguments)
        return self._background.started(lambda told: self._run(arguments, told), call)

    def task(self, state: Mapping[str, Any], *, tool_call: ToolCall | None = None) -> Task:  # noqa: ARG002 - the one signature of all tools
        """Return the task of a script in the background."""
        return self._background.task(state)

    def carry_on(self, call: ToolCall, arguments: dict[str, Any], task: Task) -> Outcome:  # noqa: ARG002 - as above
        """Look how far a script in the background is."""
        return self._background.looked(task)

    def _run(self, arguments: dict[str, Any], on_output: OnOutput | None = None) -> Outcome:
        subject = self.subject
        if _signs(subject.skill, subject.script) != subject.signs:
            raise ToolError("the skill was changed since its tools were listed; list them again")
        words = words_of(subject.interface, arguments)
        files: list[tuple[Attachment, ...]] = []
        problems: list[Problem] = []

        def take(folder: Path) -> None:
            found, left = collect(folder)
            files.append(found)
            problems.extend(left)

        made = Call(
            subject.skill,
            subject.script.name,
            tuple(words.argv),
            stdin=words.stdin,
            timeout=subject.entry.timeout if subject.entry is not None else None,
            named=self.named(arguments),
            flags=self.flags,
            answers=answers_text(current_answers()),
        )
        events = EventSink(
            lambda progress: report(progress.message, value=progress.value, total=progress.total)
        )
        run = underway()

        def planned(ready: Ready, plan: LaunchPlan) -> None:
            if self.flags is None:  # what the operator adds by hand was told to nobody
                self._still(hints_of(ready.grant))
            run.planned(ready, plan)
            if self.on_plan is not None:
                self.on_plan(ready, plan)

        listener = Listener(
            events=events, collect=take, on_plan=planned, on_drive=run.driven, on_output=on_output
        )
        result = self._runner.run_call(made, listener)
        _answered(events)
        output = subject.entry.output if subject.entry is not None else None
        for problem in problems:
            log.warning("Tool %r: %s", self._name, problem.message)
        return outcome_of(result, files[0] if files else (), output=output)


def _answered(events: EventSink) -> None:
    """Leave the call waiting for the first of a script's questions that has no answer."""
    if events.wrong is not None:
        raise ToolError(f"the script asks a person something that can't be asked: {events.wrong}")
    answers = current_answers()
    for question in events.questions:
        if answers is None:
            raise InputRequiredError(question)
        answers.give(question)


def script_tools(runner: Runner) -> tuple[tuple[ScriptTool, ...], tuple[Problem, ...]]:
    """Make the tools of every skill that is run by its name; the problems say what was left out and why."""
    catalog = runner.catalog()
    # A skill without a key has no name that another could have taken.
    chosen = [one.skill for one in catalog.listed if one.by_name or one.skill.key is None]
    tools, problems = tools_of(runner, chosen)
    return tools, (*catalog.problems, *problems)


def tools_of(runner: Runner, skills: Iterable[Skill]) -> tuple[tuple[ScriptTool, ...], tuple[Problem, ...]]:
    """Make the tools of some skills, in their order. One that has an error has none, and takes no other with it."""
    found: list[tuple[Subject, Request, Hints]] = []
    problems: list[Problem] = []
    resolver = Resolver()
    for skill in skills:
        try:
            version = digest(skill.path)
            request = listen(skill, runner.layers, version).request
        except SkillError as wrong:
            problems.append(_left_out(skill, wrong))
            continue
        problems += _unknown_entries(skill, request)
        most = _most(runner, skill, version, resolver)
        found += [
            (subject, request, UNKNOWN if most is None else hints_of(most, subject.interface))
            for subject in _subjects(skill, request)
        ]
    names = _names([subject for subject, _, _ in found])
    made = (
        ScriptTool(runner, subject, request, name=name, hints=hints)
        for (subject, request, hints), name in zip(found, names, strict=True)
    )
    return tuple(made), tuple(problems)


def _most(runner: Runner, skill: Skill, version: str, resolver: Resolver) -> Outline | None:
    """Return what a run can be granted at most, None where that can't be said: a run would say why."""
    try:
        return runner.outline(skill, version, resolver)
    except SkillrunError:
        return None


def _unknown_entries(skill: Skill, request: Request) -> list[Problem]:
    known = {script.name for script in skill.scripts}
    message = "`scripts` names `{}`, and the skill has no such script"
    return [
        warning("script-unknown", message.format(entry.name), at=entry.at)
        for entry in request.entries
        if entry.name not in known
    ]


def _subjects(skill: Skill, request: Request) -> Iterable[Subject]:
    entries = {entry.name: entry for entry in request.entries}
    for script in skill.scripts:
        entry = entries.get(script.name)
        if script.command is None or not (script.tool or entry is not None):
            continue
        native = script.command.starter is Starter.NATIVE
        reading = read_script(script.path, "native" if native else family_of(script.command.program))
        for interface in filter(None, map(interface_told, declare(entry, reading.interfaces))):
            identity = Identity(str(skill.root or ""), str(skill.path), script.name, interface.subcommand)
            yield Subject(
                skill, script, interface, entry, identity, _signs(skill, script), reading.description
            )


def _names(subjects: Sequence[Subject]) -> list[str]:
    """Name tools; those that would be equal get a hash of what they are, so no name goes to whoever came last."""
    plain = [
        script_name(one.skill.key or "", one.script.name, one.interface.subcommand, one.identity)
        for one in subjects
    ]
    count = Counter(plain)
    return [
        with_hash(name, one.identity.digest()) if count[name] > 1 else name
        for one, name in zip(subjects, plain, strict=True)
    ]


def _signs(skill: Skill, script: Script) -> tuple[tuple[int, ...], ...]:
    """Return what changes when SKILL.md or the script does: the schema was read from them."""
    signs: list[tuple[int, ...]] = []
    for path in (skill.manifest, script.path):
        try:
            found = os.lstat(path)
        except OSError:
            signs.append(())
            continue
        signs.append((found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns))
    return tuple(signs)


def _named(interface: Interface, arguments: dict[str, Any]) -> Iterable[NamedPath]:
    """Give the files that arguments name by parameters that declare an access. A default is never a grant."""
    for parameter in interface.parameters:
        if parameter.access is None or parameter.name not in arguments:
            continue
        value = arguments[parameter.name]
        for text in value if isinstance(value, list) else [value]:
            yield NamedPath(parameter.name, str(text), write=parameter.access is Access.WRITE)


def _wants_word(request: Request, interface: Interface, kinds: Sequence[str]) -> bool:
    """Whether the operator wants to be asked before a tool with such access is called (`tools.approve`)."""
    given = {one.access.value for one in interface.parameters if one.access is not None}
    core = bool(request.of(Capability.TRUST))  # granted, it runs unconfined: that is access of every kind
    given |= {word for word, capability in _KINDS.items() if core or request.of(capability)}
    # A word that is none of ours may have been meant for anything, so it asks about everything.
    return any(kind in given or kind not in _KINDS for kind in kinds)


def _longest(subject: Subject, runner: Runner) -> float:
    """Return a bound on the seconds that a run may take: the ceiling's, or the script's own where that is less."""
    allowed = runner.layers.base.timeout
    own = subject.entry.timeout if subject.entry is not None else None
    known = [one for one in (own, allowed.value if allowed is not None else None) if one is not None]
    return min(known, default=MAX_RUN_TIME)


def _left_out(skill: Skill, wrong: SkillError) -> Problem:
    message = f"`{skill.key or skill.found}` has no tools: {wrong.problem.message}"
    return error(
        wrong.problem.rule, message, at=wrong.problem.at or At(skill.manifest), help=wrong.problem.help
    )
