"""Ready: a run as far as it is known before its start, and the Result put together after its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skillrun.launch.aftermath import structured
from skillrun.launch.capture import Captured
from skillrun.launch.denials import denials
from skillrun.launch.result import Result, Termination
from skillrun.sandbox.linux.limits import limits_met

if TYPE_CHECKING:
    from skillrun.launch.drive import Outcome
    from skillrun.launch.verdict import Verdict
    from skillrun.permissions.grant import Grant
    from skillrun.permissions.layers import Layers
    from skillrun.permissions.place import Place
    from skillrun.problem import Problem
    from skillrun.sandbox.backend import LaunchPlan
    from skillrun.sandbox.choose import Chosen
    from skillrun.sandbox.complete import Subject
    from skillrun.sandbox.guarantee import Guarantees
    from skillrun.sandbox.policy import Policy
    from skillrun.sandbox.search import Search
    from skillrun.skills.model import Skill

NOTHING: Final = Captured("", 0, truncated=False)


@dataclass(frozen=True, slots=True)
class Ready:
    """A run as far as it is known before a backend is chosen; `inside` is what its granted folders hold."""

    skill: Skill
    digest: str
    subject: Subject
    place: Place
    grant: Grant
    policy: Policy
    inside: Search


@dataclass(frozen=True, slots=True)
class Preview:
    """A run that is not started: what would be enforced, or why it would be refused."""

    ready: Ready
    chosen: Chosen
    guarantees: Guarantees | None
    refusal: Problem | None


def result_of(
    ready: Ready,
    verdict: Verdict,
    *,
    layers: Layers,
    plan: LaunchPlan | None = None,
    outcome: Outcome | None = None,
    violations: tuple[Problem, ...] = (),
) -> Result:
    """Put a Result together from what is known; without an outcome nothing was started."""
    subject, policy = ready.subject, ready.policy
    stdout = outcome.stdout if outcome else NOTHING
    failed = outcome is not None and verdict.termination is Termination.EXITED and verdict.exit_code != 0
    met = tuple(limits_met(plan.level, outcome.stderr.text)) if failed and plan and outcome else ()
    return Result(
        skill=ready.skill,
        digest=ready.digest,
        script_name=subject.script.name,
        script_path=subject.script.path,
        interpreter=subject.interpreter,
        argv=policy.argv,
        cwd=policy.cwd,
        termination=verdict.termination,
        exit_code=verdict.exit_code,
        signal=verdict.signal,
        error=verdict.error,
        duration_s=outcome.duration if outcome else 0.0,
        timeout_s=policy.timeout,
        stdout=stdout,
        stderr=outcome.stderr if outcome else NOTHING,
        json=structured(stdout),
        leftovers=verdict.leftovers,
        backend=plan.backend if plan else None,
        level=plan.level if plan else None,
        guarantees=plan.guarantees if plan else None,
        grant=ready.grant,
        denials=denials((outcome.ended or {}).get("denials", ())) if outcome else (),
        violations=violations,
        warnings=(*layers.problems, *policy.warnings, *(plan.warnings if plan else ()), *met),
        usage=verdict.usage,
    )
