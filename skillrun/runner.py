"""The pipeline: discover, request, grant, policy, plan, launch, result, in one direction."""

from __future__ import annotations

import contextlib
import functools
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skillrun import resources
from skillrun.errors import SkillError
from skillrun.host import Host
from skillrun.launch.aftermath import violations
from skillrun.launch.capture import Keep
from skillrun.launch.drive import Drive
from skillrun.launch.faults import named
from skillrun.launch.platform import launcher
from skillrun.launch.ready import Preview, Ready, result_of
from skillrun.launch.result import Result, Termination
from skillrun.launch.root import shared_root
from skillrun.launch.scratch import (
    RUNS,
    furnish,
    make_missing,
    make_scratch,
    remove_scratch,
    remove_untouched,
)
from skillrun.launch.verdict import Verdict, judge, too_large
from skillrun.permissions.decide import decide
from skillrun.permissions.flags import Flags
from skillrun.permissions.grant import Grant, Requirement
from skillrun.permissions.layers import Layers, load_layers
from skillrun.permissions.place import Place
from skillrun.permissions.project import repository_root
from skillrun.permissions.voices import Voice, listen
from skillrun.permissions.workspace import check_workspace
from skillrun.problem import Problem, error
from skillrun.roots import PROJECT_ROOTS, linked_skills, look_through, skill_roots
from skillrun.sandbox.choose import Choice, choose
from skillrun.sandbox.complete import Guarded, Subject, complete, first_parts
from skillrun.sandbox.environment import BIN
from skillrun.sandbox.installation import own_code, search_folders
from skillrun.sandbox.landscape import survey
from skillrun.sandbox.search import search
from skillrun.skills.digest import digest, identity
from skillrun.skills.interpreter import family_of, find_interpreter
from skillrun.skills.model import Command, Starter
from skillrun.skills.scripts import choose_script
from skillrun.skills.skill import read_skill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from skillrun.launch.capture import Sink
    from skillrun.sandbox.backend import LaunchPlan
    from skillrun.skills.catalog import Catalog
    from skillrun.skills.model import Interpreter, Skill


_MOST_VOICES: Final = 1_000  # versions of skills remembered by one runner; a bound on memory


class Runner:
    """Runs scripts of skills under one ceiling in one workspace.

    `skills` are roots named by the operator; without them the usual folders of the workspace and the
    home are looked through. `ceiling` is a preset or a file. Everything about the caller's surroundings
    comes with `host` (`current_host()` for this process); without it there is no home, no PATH but the
    system's, and no operator's file. Use it as a context manager, or close it.

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
    ) -> None:
        self.host = host or Host()
        self._choice = Choice(
            require=Requirement(require) if isinstance(require, str) else require,
            backend=backend,
            allow_unconfined=allow_unconfined,
        )
        self._named_roots = tuple(skills)
        self.layers: Layers = load_layers(
            ceiling=ceiling,
            workspace=workspace,
            config_file=self.host.config_file,
            machine_file=self.host.machine_file,
            home=self.host.home,
            named_roots=self._named_roots,
        )
        self.workspace = check_workspace(workspace, home=self.host.home, allowed=self.layers.workspaces)
        self._ceiling_file = ceiling if isinstance(ceiling, Path) else None
        self.launcher = launcher(self.host.temporary)
        self._furnished: Path | None = None
        self._unremoved: list[Path] = []
        self._interpreters: dict[Command, tuple[tuple[int, ...], Interpreter]] = {}
        self._voices: dict[tuple[Path, Path | None, str], Voice] = {}

    def __enter__(self) -> Runner:  # noqa: PYI034 - Self came with Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every run of this runner and the launcher."""
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
        sinks: tuple[Sink, Sink] | None = None,
        on_plan: Callable[[Ready, LaunchPlan], None] | None = None,
    ) -> Result:
        """Run a script and return what happened; never raises for what the script does.

        `timeout` in seconds can only shorten. `strict` makes every cut of the request a refusal. `typed`
        says that a person typed the arguments, so that existing paths among them are granted for reading
        within the ceiling. `sinks` take stdout and stderr; by default both are kept, bounded. `on_plan`
        is told what is about to start.

        Raises SkillError, UsageError and ConfigError when there is nothing that could be run.
        """
        with self._scratch() as scratch:
            ready = self._prepare(skill, script, arguments, scratch=scratch, flags=flags, typed=typed)
            if timeout is not None:
                ready = replace(ready, policy=ready.policy.shortened(max(0.0, timeout)))
            refusal = self._refusal(ready, strict=strict)
            if refusal is not None:
                return result_of(ready, Verdict(Termination.REFUSED, error=refusal), layers=self.layers)
            with _missing(ready.grant):
                chosen = choose(ready.policy, self.layers, self.launcher.probe(), self._choice)
                if chosen.backend is None:
                    return result_of(
                        ready, Verdict(Termination.REFUSED, error=chosen.refusal), layers=self.layers
                    )
                landscape = survey(ready.policy, split=chosen.backend.splits(chosen.probe))
                plan = chosen.backend.plan(ready.policy, landscape, chosen.probe)
                if on_plan is not None:
                    on_plan(ready, plan)
                keep = int(ready.policy.limits.output)
                out, err = sinks or (Keep(keep), Keep(keep))
                outcome = Drive(self.launcher, plan, stdin, out, err, scratch=scratch).run()
                left = violations(
                    ready.policy,
                    landscape,
                    ready.inside,
                    quarantine=self.quarantine,
                    skill_roots=self._skill_roots,
                )
            verdict = judge(outcome, ready.policy)
            return result_of(ready, verdict, layers=self.layers, plan=plan, outcome=outcome, violations=left)

    def preview(
        self,
        skill: Skill | Path | str,
        script: str | None = None,
        arguments: Sequence[str] = (),
        *,
        strict: bool = False,
        flags: Flags | None = None,
        typed: bool = False,
    ) -> Preview:
        """Do everything that `run` does up to the start, and return what it would be."""
        with self._scratch() as scratch:
            ready = self._prepare(skill, script, arguments, scratch=scratch, flags=flags, typed=typed)
            chosen = choose(ready.policy, self.layers, self.launcher.probe(), self._choice)
            backend = chosen.backend
            guarantees = None if backend is None else backend.guarantees(ready.policy, chosen.probe)
            return Preview(ready, chosen, guarantees, self._refusal(ready, strict=strict) or chosen.refusal)

    def _prepare(
        self,
        skill: Skill | Path | str,
        script: str | None,
        arguments: Sequence[str],
        *,
        scratch: Path,
        flags: Flags | None,
        typed: bool,
    ) -> Ready:
        """Go from a name to a policy: discover, request, resolve, intersect, complete."""
        found = self.find(skill)
        subject = self.subject(found, script, arguments)
        version = digest(found.path)
        place = self.place(found, scratch)
        typed_arguments = arguments if typed else ()
        grant = decide(
            found,
            self.layers,
            place,
            digest=version,
            flags=flags or Flags(),
            arguments=typed_arguments,
            voice=self._voice(found, version),
        )
        inside = search({*grant.capabilities.fs_read, found.path}, first_parts())
        policy = complete(grant, place, subject, guarded=self.guarded(found), found=inside)
        return Ready(found, version, subject, place, grant, policy, inside)

    def find(self, skill: Skill | Path | str) -> Skill:
        """Return a skill given as itself, by its folder (a Path, or text with a slash), or by its key.

        Raises UsageError for an unknown key, SkillError for a folder that can't be read as a skill.
        """
        if isinstance(skill, str) and ("/" in skill or skill in {".", ".."}):
            skill = self.workspace / skill
        if isinstance(skill, str):
            return self.catalog().by_key(skill)
        if isinstance(skill, Path):
            return read_skill(skill, repository=repository_root(skill), home=self.host.home)
        return skill

    def catalog(self) -> Catalog:
        """Look through every root."""
        return look_through(self.roots(), self.host)

    def roots(self) -> tuple[tuple[Path, bool], ...]:
        """Give the roots that exist or were named, each with whether it is the operator's own."""
        return skill_roots(self.workspace, self.host, self._named_roots)

    def subject(self, skill: Skill, script: str | None, arguments: Sequence[str]) -> Subject:
        """Identify what is to be started: the script, its bytes, and its interpreter.

        Raises SkillError for a skill that is not valid: nothing of it runs, on no guess (law 3).
        """
        if not skill.valid:
            raise SkillError(*(p for p in skill.problems if p.severity.value == "error"))
        chosen = choose_script(skill, script)
        return Subject(
            skill=skill,
            script=chosen,
            identity=identity(chosen.path),
            interpreter=self._interpreter(chosen.command),
            arguments=tuple(arguments),
        )

    def _interpreter(self, command: Command | None) -> Interpreter | None:
        """Find an interpreter: the operator's for its family, else the one the script names.

        A find is kept for the next run as long as the same file lies at the end of the same path.
        """
        if command is None or command.starter is Starter.NATIVE:
            return None
        own = dict(self.layers.interpreters).get(family_of(command.program))
        if own is not None:
            command = Command(command.starter, str(own), command.args)
        known = self._interpreters.get(command)
        if known is not None and known[0] == _signature(known[1].path):
            return known[1]
        search = self.host.environ.get("PATH", "")
        found = find_interpreter(command, search=search, home=self.host.home, refuse=(self.workspace,))
        self._interpreters[command] = (_signature(found.path), found)
        return found

    def _voice(self, skill: Skill, version: str) -> Voice:
        """Listen to a skill and to the operator about it; once for each version of a skill."""
        key = (skill.path, skill.root, version)
        if key not in self._voices:
            if len(self._voices) >= _MOST_VOICES:
                self._voices.clear()
            self._voices[key] = listen(skill, self.layers, version)
        return self._voices[key]

    def place(self, skill: Skill, scratch: Path) -> Place:
        """Describe where a run of a skill happens."""
        return Place(
            workspace=self.workspace,
            skill=skill.path,
            scratch=scratch,
            home=self.host.home,
            environ=self.host.environ,
        )

    def guarded(self, skill: Skill) -> Guarded:
        """Name what a script must never change, and what it must not even see (law 8)."""
        known = replace(self._guarded, programs=(self._furnished or self.launcher.scratch_root) / BIN)
        if skill.root is None:
            return known
        return replace(known, readable=(*known.readable, (skill.root.resolve(), "skills and their scripts")))

    @functools.cached_property
    def _skill_roots(self) -> tuple[Path, ...]:
        """Give the known roots of skills, the usual ones too where they are not there yet."""
        roots = [root for root, _ in self.roots()] + [self.workspace / name for name in PROJECT_ROOTS]
        return tuple(dict.fromkeys(root.resolve() for root in roots))

    @functools.cached_property
    def _guarded(self) -> Guarded:
        """Name what is guarded whatever the skill; looked up once."""
        files = [self.host.config_file, self.host.machine_file, self._ceiling_file]
        readable = [(path, "it limits what scripts may do") for path in files if path is not None]
        # The usual roots too where they are not there: what a run puts there would be a skill later.
        readable += [(root, "skills and their scripts") for root in self._skill_roots]
        readable += [(path, "a skill") for path in linked_skills(self._skill_roots)]
        hidden = [
            (shared_root(self.host.temporary), "scratch of other runs"),
            (self.launcher.scratch_root / RUNS, "scratch of other runs"),
        ]
        if self.host.state is not None:
            hidden.append((self.host.state, "skillrun's own records"))
        return Guarded(
            programs=self.launcher.scratch_root / BIN,
            readable=(*readable, *own_code()),
            listed=search_folders(self.host.environ.get("PATH", "")),
            hidden=tuple(hidden),
        )

    @property
    def quarantine(self) -> Path | None:
        """Where things are moved that a run made and a later one would obey; None without a state folder."""
        return self.host.state and self.host.state / "quarantine"

    @functools.cached_property
    def _python(self) -> Path | None:
        """Return the Python that `bin/python` in scratch leads to, where the system has no `python` itself."""
        folders = resources.table("linux/system")["path"]
        if any(os.access(f"{folder}/python", os.X_OK) for folder in folders):
            return None
        try:
            return find_interpreter(Command(Starter.SHEBANG, "python3"), search="").path
        except SkillError:
            return None

    @contextlib.contextmanager
    def _scratch(self) -> Iterator[Path]:
        """Give a scratch folder and remove it, whatever the script made of it."""
        while self._unremoved:
            remove_scratch(self._unremoved.pop())
        root = self.launcher.folder()
        try:
            if self._furnished != root:  # a new launcher has a new folder
                furnish(root, self._python)
                self._furnished = root
                self.__dict__.pop("_guarded", None)
            scratch = make_scratch(root / RUNS)
        except OSError as problem:
            raise self.launcher.unusable(root, problem) from problem
        try:
            with named(scratch):
                yield scratch
        finally:
            if not remove_scratch(scratch):  # without a free descriptor, for one
                self._unremoved.append(scratch)

    def _refusal(self, ready: Ready, *, strict: bool) -> Problem | None:
        """Say why a run must not start, None when nothing speaks against it."""
        grant, policy = ready.grant, ready.policy
        cuts = len(grant.narrowed) + len(grant.refused)
        if strict and cuts:
            message = f"{cuts} of the skill's requests were cut, and --strict makes that a refusal"
            return error("strict", message, help="`skillrun show` lists the cuts with their places")
        network = grant.capabilities.network
        if network.endpoints and not network.everything and grant.unconfined is None:
            names = ", ".join(sorted(map(str, network.endpoints)))
            return error(
                "network-hosts",
                f"the grant is a list of hosts ({names}), and skillrun can't enforce one yet",
                help="grant `network: true` or none",
            )
        return too_large(policy.argv, policy.environ)


def _signature(path: Path) -> tuple[int, ...]:
    """Return what changes when another file lies at the end of a path; empty when there is none."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns


@contextlib.contextmanager
def _missing(grant: Grant) -> Iterator[None]:
    """Make the granted write paths that are missing, and take away again what the run did not use."""
    made = make_missing(grant.missing)
    try:
        yield
    finally:
        remove_untouched(made)
