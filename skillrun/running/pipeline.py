"""The pipeline: discover, request, grant, policy, plan, launch, result, in one direction."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from skillrun import log
from skillrun.launch.aftermath import violations
from skillrun.launch.denials import denials, failed
from skillrun.launch.drive import Drive
from skillrun.launch.ready import Preview, Ready, result_of
from skillrun.launch.refusing import refusal_of
from skillrun.launch.result import Result, Termination
from skillrun.launch.scratches import Scratches, root_of
from skillrun.launch.system_log import suspects as logged
from skillrun.launch.tracing import trace
from skillrun.launch.verdict import Verdict, judge
from skillrun.permissions.flags import Flags
from skillrun.sandbox.choose import Choice, choose
from skillrun.sandbox.complete import complete, first_parts
from skillrun.sandbox.environment import OUTPUT
from skillrun.sandbox.git_obeys import Surroundings, obeyed, obeyed_in
from skillrun.sandbox.landscape import hold, survey
from skillrun.sandbox.search import search, standing_above
from skillrun.skills.digest import digest

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from skillrun.launch.drive import Outcome
    from skillrun.launch.launcher import Launcher
    from skillrun.launch.placeholders import Placeholders
    from skillrun.launch.session import Session
    from skillrun.permissions.grant import Grant
    from skillrun.permissions.layers import Layers
    from skillrun.permissions.place import Place
    from skillrun.running.call import Call
    from skillrun.running.decisions import Decisions
    from skillrun.running.guards import Guards
    from skillrun.running.listener import Listener
    from skillrun.running.lookup import Lookup
    from skillrun.running.own import Own
    from skillrun.sandbox.backend import LaunchPlan
    from skillrun.skills.model import Skill


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What every run of one runner goes through, and what that is made of."""

    launcher: Launcher | Session
    layers: Layers
    choice: Choice
    lookup: Lookup
    decisions: Decisions
    guards: Guards
    surroundings: Surroundings
    scratches: Scratches
    placed: Own[Placeholders]

    def run(self, call: Call, listener: Listener) -> Result:
        """Discover, request, grant, policy, plan, launch, result."""
        # Left from the bottom: what is done with the script's files is done while the kernel ends what was made for it.
        with (
            contextlib.ExitStack() as proof,
            self.scratches.scratch() as scratch,
            self.placed.get().stay() as stay,
        ):
            ready = self._prepare(call.checked(), scratch)
            if listener.events is not None:
                ready = replace(ready, policy=ready.policy.with_events(call.answers))
            if call.timeout is not None:
                ready = replace(ready, policy=ready.policy.shortened(max(0.0, call.timeout)))
            refusal = refusal_of(ready, strict=call.strict)
            if refusal is not None:
                return result_of(ready, Verdict(Termination.REFUSED, error=refusal), layers=self.layers)
            stay.settle(ready.grant)
            log.debug(
                "decided", skill=ready.skill.path, script=ready.subject.script.name, digest=ready.digest
            )
            chosen = choose(ready.policy, self.layers, self.launcher.probe(), self.choice)
            if chosen.backend is None:
                return result_of(
                    ready, Verdict(Termination.REFUSED, error=chosen.refusal), layers=self.layers
                )
            landscape = survey(ready.policy, split=chosen.backend.splits(chosen.probe))
            hold(ready.grant.pins, landscape)
            plan = chosen.backend.plan(ready.policy, landscape, chosen.probe)
            log.debug("planned", backend=plan.backend, level=plan.level, timeout=ready.policy.timeout)
            with trace(chosen.probe, wanted=call.trace and plan.level is not None) as traced:
                plan = traced.marked(plan)
                if listener.on_plan is not None:
                    listener.on_plan(ready, plan)
                listener = replace(listener, on_start=traced.watching(listener.on_start), told=traced.told)
                outcome = proof.enter_context(self._drive(plan, call, listener, ready))
            if problems := traced.problems():
                plan = replace(plan, warnings=(*plan.warnings, *problems))
            verdict = judge(outcome, ready.policy)
            told = traced.suspects(plan, ready.policy, chosen.probe) if failed(verdict) else ()
            if listener.collect is not None:
                listener.collect(scratch / OUTPUT)
            left = violations(
                ready.policy,
                landscape,
                ready.inside,
                quarantine=self.guards.quarantine,
                skill_roots=self.guards.skill_roots,
                obeyed=partial(obeyed_in, surroundings=self.surroundings),
            )
            denied = denials(
                ready,
                verdict,
                outcome,
                told=(*told, *logged((outcome.ended or {}).get("denials", ()))),
                plan=plan,
                probe=chosen.probe,
                grant=partial(self._grant, call),
            )
            log.debug("ended", how=verdict.termination.value, seconds=round(outcome.duration, 3))
            return result_of(
                ready,
                verdict,
                layers=self.layers,
                plan=plan,
                outcome=outcome,
                violations=left,
                denials=denied,
            )

    def _drive(
        self, plan: LaunchPlan, call: Call, listener: Listener, ready: Ready
    ) -> AbstractContextManager[Outcome]:
        """Have a plan carried out, with whoever listens attached."""
        out, err = listener.outlets(int(ready.policy.limits.output))
        drive = Drive(
            self.launcher,
            plan,
            call.stdin,
            out,
            err,
            on_start=listener.on_start,
            scratch=ready.place.scratch,
            upcoming=self.scratches.upcoming,
            meanwhile=self.scratches.make_ahead,
            events=listener.events,
            source=listener.source,
            told=listener.told,
        )
        if listener.on_drive is not None:
            listener.on_drive(drive)
        return drive.running()

    def preview(self, call: Call, *, strict: bool) -> Preview:
        """Do everything that `run` does up to the start, and return what it would be."""
        with self.scratches.scratch() as scratch:
            ready = self._prepare(call.checked(), scratch)
            chosen = choose(ready.policy, self.layers, self.launcher.probe(), self.choice)
            backend = chosen.backend
            guarantees = None if backend is None else backend.guarantees(ready.policy, chosen.probe)
            return Preview(ready, chosen, guarantees, refusal_of(ready, strict=strict) or chosen.refusal)

    def _prepare(self, call: Call, scratch: Path) -> Ready:
        """Go from a name to a policy: discover, request, resolve, intersect, complete."""
        found = self.lookup.find(call.skill)
        subject = self.lookup.subject(found, call.script, call.arguments)
        version = digest(found.path)
        place = self.lookup.place(found, scratch)
        grant = self.decisions.decide(found, version, place, call)
        inside = search({*grant.capabilities.fs_read, found.path}, first_parts())
        named = obeyed(grant.capabilities.fs_write, inside, self.surroundings)
        inside = replace(inside, complete=inside.complete and named.complete)
        guarded = self.guards.around(found, root_of(scratch)).with_readable(
            (*named.paths, *standing_above(grant.capabilities.fs_write))
        )
        policy = complete(grant, place, subject, guarded=guarded, found=inside)
        return Ready(found, version, subject, place, grant, policy, inside, call.flags or Flags())

    def _grant(self, call: Call, found: Skill, version: str, place: Place, flags: Flags) -> Grant:
        """Decide what a call might do with other flags."""
        return self.decisions.afresh(found, version, place, replace(call, flags=flags))
