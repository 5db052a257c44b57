"""The runner: everything that runs scripts goes through one, one run or many, here or elsewhere."""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from skillrun.host import Host
from skillrun.launch.placeholders import Placeholders
from skillrun.launch.platform import launcher
from skillrun.launch.scratches import Scratches
from skillrun.permissions.decide import NO_SCRATCH, outline
from skillrun.permissions.grant import Requirement
from skillrun.permissions.layers import Layers, load_layers
from skillrun.permissions.resolve import Resolver
from skillrun.permissions.workspace import check_workspace
from skillrun.running.admission import AT_ONCE, WAITING, Admission
from skillrun.running.call import Call, Progress, Reply
from skillrun.running.decisions import Decisions
from skillrun.running.guards import Guards
from skillrun.running.jobs import Jobs
from skillrun.running.listener import NOBODY, Listener
from skillrun.running.lookup import Lookup
from skillrun.running.own import Own
from skillrun.running.pipeline import Pipeline
from skillrun.running.recorder import Recorder, checked
from skillrun.sandbox.choose import Choice
from skillrun.sandbox.git_obeys import Surroundings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Executor

    from skillrun.launch.capture import Sink
    from skillrun.launch.ready import Preview, Ready
    from skillrun.launch.result import Result
    from skillrun.permissions.access import NamedPath
    from skillrun.permissions.decide import Outline
    from skillrun.permissions.flags import Flags
    from skillrun.running.handle import Handle
    from skillrun.running.listener import OnOutput
    from skillrun.sandbox.backend import LaunchPlan
    from skillrun.skills.catalog import Catalog
    from skillrun.skills.model import Skill


class Runner:
    """Runs scripts of skills under one ceiling in one workspace.

    `skills` are roots named by the operator; without them the usual folders of the workspace and the
    home are looked through. `ceiling` is a preset or a file. Everything about the caller's surroundings
    comes with `host` (`current_host()` for this process); without it there is no home, no PATH but the
    system's, and no operator's file. Use it as a context manager, or close it.

    Thread-safe: `at_once` runs may be under way, `waiting` more may wait for their turn, in the order in
    which they came. It works in a forked copy of the process too, with runs of its own.

    `recorder` is given what came of every run (`skillrun.report.records.Records` is one). `hidden` are files and folders
    of the operator's that no run can read or change, whatever it is granted; the state folder is one anyway.

    Raises UsageError for a workspace that is refused, ConfigError for a configuration that is wrong.
    """

    def __init__(
        self,
        *,
        workspace: Path,
        skills: Sequence[Path] = (),
        ceiling: Path | str | None = None,
        require: Requirement | str | None = None,
        backend: str | None = None,
        allow_unconfined: bool = False,
        host: Host | None = None,
        at_once: int = AT_ONCE,
        waiting: int = WAITING,
        recorder: Recorder | None = None,
        hidden: Sequence[Path] = (),
    ) -> None:
        self.host = host or Host()
        self._choice = Choice(
            require=Requirement(require) if isinstance(require, str) else require,
            backend=backend,
            allow_unconfined=allow_unconfined,
        )
        roots = tuple(skills)
        self.layers: Layers = load_layers(
            ceiling=ceiling,
            workspace=workspace,
            config_file=self.host.config_file,
            machine_file=self.host.machine_file,
            home=self.host.home,
            named_roots=roots,
        )
        self.workspace = check_workspace(workspace, home=self.host.home, allowed=self.layers.workspaces)
        self._lookup = Lookup(workspace=self.workspace, host=self.host, layers=self.layers, named_roots=roots)
        self._made_from = roots, ceiling
        self._guards = Guards(
            workspace=self.workspace,
            host=self.host,
            lookup=self._lookup,
            ceiling_file=ceiling if isinstance(ceiling, Path) else None,
            records=recorder.path if recorder is not None else None,
            hidden=tuple(path.resolve() for path in hidden),
        )
        self._recorder = recorder and checked(
            recorder, workspace=self.workspace, roots=self._guards.skill_roots
        )
        self.launcher = launcher(self.host.temporary)
        self._scratches = Scratches(self.launcher)
        self._pipeline = Pipeline(
            launcher=self.launcher,
            layers=self.layers,
            choice=self._choice,
            lookup=self._lookup,
            decisions=Decisions(self._lookup, self.layers),
            guards=self._guards,
            surroundings=Surroundings(self.host.home, self.host.environ),
            scratches=self._scratches,
            placed=Own(Placeholders),
        )
        self._admission = Admission(at_once=at_once, waiting=waiting)
        self.jobs = Jobs()

    def __enter__(self) -> Runner:  # noqa: PYI034 - Self came with Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every run of this runner and the launcher; who waits for a turn is sent away."""
        self._admission.close()
        self.jobs.close()
        self.launcher.close()

    def run(
        self,
        skill: Skill | Path | str,
        script: str | None = None,
        arguments: Sequence[str] = (),
        *,
        stdin: bytes = b"",
        timeout: float | None = None,
        strict: bool = False,
        flags: Flags | None = None,
        typed: bool = False,
        trace: bool = False,
        sinks: tuple[Sink, Sink] | None = None,
        on_plan: Callable[[Ready, LaunchPlan], None] | None = None,
    ) -> Result:
        """Run a script and return what happened; never raises for what the script does.

        `timeout` in seconds can only shorten. `strict` makes every cut of the request a refusal. `typed`
        says that a person typed the arguments, so that existing paths among them are granted for reading
        within the ceiling. `trace` has the kernel tell what is asked for, to say what was denied. `sinks` take stdout and stderr; by default both are kept, bounded. `on_plan`
        is told what is about to start. Waits for its turn when `at_once` runs are under way.

        Raises SkillError, UsageError and ConfigError when there is nothing that could be run, AdmissionError
        when too many wait already.
        """
        call = Call(skill, script, tuple(arguments), stdin, timeout, strict, flags, typed, trace)
        return self.run_call(call, Listener(sinks=sinks, on_plan=on_plan))

    def run_call(self, call: Call, listener: Listener = NOBODY) -> Result:
        """Do what `run` does with a call as a value."""
        with self._admission.turn():
            return self._run(call, listener)

    def start(self, call: Call, *, on_output: OnOutput | None = None) -> Handle:
        """Start a run beside the caller and return at once; it may have to wait for its turn.

        `on_output` is told `stdout` or `stderr` and the bytes as they come, in the run's own thread; the
        script waits for a callback that is slow. Raises AdmissionError when too many wait already.
        """
        from skillrun.running.handle import Handle  # noqa: PLC0415 - the command line need not load threads' futures

        return Handle(self._admission, lambda listener: self._run(call, listener), on_output=on_output)

    async def arun(self, call: Call, *, on_output: OnOutput | None = None) -> Result:
        """Run without blocking asyncio's loop, in which `on_output` is called.

        When the task is cancelled so is the run, and CancelledError comes once nothing of it is left.
        """
        from skillrun.running.awaiting import awaited  # noqa: PLC0415 - asyncio, for those who have it anyway

        return await awaited(lambda told: self.start(call, on_output=told), on_output)

    def run_many(
        self,
        calls: Iterable[Call],
        *,
        limit: int = AT_ONCE,
        executor: Executor | None = None,
        on_progress: Callable[[Progress], object] | None = None,
    ) -> list[Reply]:
        """Make many calls, at most `limit` at once, and return one reply for each, in the order of the calls.

        An `executor` makes them elsewhere: workers that import skillrun, see the same files and read the same
        ceiling. No call is made twice: what a lost worker had is an error in its reply.
        """
        total = len(calls) if isinstance(calls, Sized) else None
        found: list[Reply] = []
        for reply in self.replies(calls, limit=limit, executor=executor):
            found.append(reply)
            if on_progress is not None:
                on_progress(Progress(len(found), total, reply))
        return sorted(found, key=lambda reply: reply.index)

    def replies(
        self, calls: Iterable[Call], *, limit: int = AT_ONCE, executor: Executor | None = None
    ) -> Iterator[Reply]:
        """Make many calls as `run_many` does, and give each reply as it comes; nothing is kept.

        Close the iterator to end what is under way.
        """
        from skillrun.running.many import Here, replies  # noqa: PLC0415 - see `start`

        if executor is None:
            here = Here(self.start)
            return replies(calls, here.submit, here.abandon, limit=limit)
        from skillrun.running.elsewhere import There, recipe_of  # noqa: PLC0415 - see `start`

        there = There(executor, recipe_of(self, self._choice, self._made_from))
        return self._recorded(replies(calls, there.submit, there.abandon, limit=limit))

    def _recorded(self, found: Iterator[Reply]) -> Iterator[Reply]:
        """Write down what ran elsewhere: its runner has no recorder."""
        for reply in found:
            ended = reply.result or reply.error
            if self._recorder is not None and ended is not None:
                self._recorder.record(reply.call, ended)
            yield reply

    def _run(self, call: Call, listener: Listener) -> Result:
        """Go through the pipeline and have it written down; the caller has seen to it that it is this run's turn."""
        if self._recorder is None:
            return self._pipeline.run(call, listener)
        try:
            result = self._pipeline.run(call, listener)
        except BaseException as ended:
            self._recorder.record(call, ended)
            raise
        self._recorder.record(call, result)
        return result

    def preview(
        self,
        skill: Skill | Path | str,
        script: str | None = None,
        arguments: Sequence[str] = (),
        *,
        strict: bool = False,
        flags: Flags | None = None,
        typed: bool = False,
        named: tuple[NamedPath, ...] = (),
    ) -> Preview:
        """Do everything that `run` does up to the start, and return what it would be."""
        call = Call(skill, script, tuple(arguments), flags=flags, typed=typed, named=named)
        return self._pipeline.preview(call, strict=strict)

    def outline(self, skill: Skill, version: str, resolver: Resolver | None = None) -> Outline:
        """Return the most that a run of a skill of that digest can be granted here; raises as a run does."""
        voice = self._lookup.voice(skill, version)
        resolver = resolver or Resolver()
        self._lookup.check_workspace(resolver)
        place = self._lookup.place(skill, NO_SCRATCH)
        found = outline(skill, self.layers, place, digest=version, voice=voice, resolver=resolver)
        lenient = self._choice.allow_unconfined or self._choice.require is Requirement.NONE
        return replace(found, confined=found.confined and not lenient)

    def find(self, skill: Skill | Path | str) -> Skill:
        """Return a skill given as itself, by its folder (a Path, or text with a slash), or by its key.

        Raises UsageError for an unknown key, SkillError for a folder that can't be read as a skill.
        """
        return self._lookup.find(skill)

    def catalog(self) -> Catalog:
        """Look through every root."""
        return self._lookup.catalog()
