"""The pipeline: discover, request, grant, policy, plan, launch, result, in one direction."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from skillrun.host import Host
from skillrun.launch.aftermath import violations
from skillrun.launch.capture import Keep
from skillrun.launch.drive import Drive
from skillrun.launch.launcher import Launcher
from skillrun.launch.ready import Preview, Ready, result_of
from skillrun.launch.result import Result, Termination
from skillrun.launch.scratch import make_missing, remove_untouched
from skillrun.launch.scratches import Scratches, root_of
from skillrun.launch.verdict import Verdict, judge, too_large
from skillrun.permissions.decide import decide
from skillrun.permissions.flags import Flags
from skillrun.permissions.grant import Grant, Requirement
from skillrun.permissions.layers import Layers, load_layers
from skillrun.permissions.workspace import check_workspace
from skillrun.problem import Problem, error
from skillrun.running.guards import Guards
from skillrun.running.lookup import Lookup
from skillrun.sandbox.choose import Choice, choose
from skillrun.sandbox.complete import complete, first_parts
from skillrun.sandbox.git_obeys import Surroundings, obeyed, obeyed_in
from skillrun.sandbox.landscape import survey
from skillrun.sandbox.search import search
from skillrun.skills.digest import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from skillrun.launch.capture import Sink
    from skillrun.sandbox.backend import LaunchPlan
    from skillrun.skills.catalog import Catalog
    from skillrun.skills.model import Skill


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
        self._guards = Guards(
            workspace=self.workspace,
            host=self.host,
            lookup=self._lookup,
            ceiling_file=ceiling if isinstance(ceiling, Path) else None,
        )
        self._surroundings = Surroundings(self.host.home, self.host.environ)
        self.launcher = Launcher(temporary=self.host.temporary)
        self._scratches = Scratches(self.launcher)

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
        with self._scratches.scratch() as scratch:
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
                    quarantine=self._guards.quarantine,
                    skill_roots=self._guards.skill_roots,
                    obeyed=partial(obeyed_in, surroundings=self._surroundings),
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
        with self._scratches.scratch() as scratch:
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
        found = self._lookup.find(skill)
        subject = self._lookup.subject(found, script, arguments)
        version = digest(found.path)
        place = self._lookup.place(found, scratch)
        typed_arguments = arguments if typed else ()
        grant = decide(
            found,
            self.layers,
            place,
            digest=version,
            flags=flags or Flags(),
            arguments=typed_arguments,
            voice=self._lookup.voice(found, version),
        )
        inside = search({*grant.capabilities.fs_read, found.path}, first_parts())
        named = obeyed(grant.capabilities.fs_write, inside, self._surroundings)
        inside = replace(inside, complete=inside.complete and named.complete)
        guarded = self._guards.around(found, root_of(scratch)).with_readable(named.paths)
        policy = complete(grant, place, subject, guarded=guarded, found=inside)
        return Ready(found, version, subject, place, grant, policy, inside)

    def find(self, skill: Skill | Path | str) -> Skill:
        """Return a skill given as itself, by its folder (a Path, or text with a slash), or by its key.

        Raises UsageError for an unknown key, SkillError for a folder that can't be read as a skill.
        """
        return self._lookup.find(skill)

    def catalog(self) -> Catalog:
        """Look through every root."""
        return self._lookup.catalog()

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


@contextlib.contextmanager
def _missing(grant: Grant) -> Iterator[None]:
    """Make the granted write paths that are missing, and take away again what the run did not use."""
    made = make_missing(grant.missing)
    try:
        yield
    finally:
        remove_untouched(made)
