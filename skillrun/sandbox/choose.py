"""Choose the backend of a run: the platform's, unless it can't hold what is required."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillrun.permissions.ceiling import stronger
from skillrun.permissions.grant import Requirement
from skillrun.problem import Problem, error
from skillrun.sandbox.linux.backend import Linux
from skillrun.sandbox.passthrough import Passthrough
from skillrun.sandbox.seatbelt.backend import Seatbelt

if TYPE_CHECKING:
    from skillrun.permissions.layers import Layers
    from skillrun.sandbox.backend import Backend, Probe
    from skillrun.sandbox.policy import Policy

BACKENDS: tuple[Backend, ...] = (Linux(), Linux(1), Linux(2), Seatbelt(), Seatbelt(log=True), Passthrough())


@dataclass(frozen=True, slots=True)
class Choice:
    """What the caller said about enforcement. `require` None leaves it to the ceiling.

    `backend` names one; `allow_unconfined` accepts none where a floor does not forbid it.
    """

    require: Requirement | None = None
    backend: str | None = None
    allow_unconfined: bool = False


@dataclass(frozen=True, slots=True)
class Chosen:
    """A backend and what it was chosen by, or the refusal."""

    backend: Backend | None
    probe: Probe
    refusal: Problem | None = None


def required(policy: Policy, layers: Layers, choice: Choice) -> Requirement:
    """Return the enforcement that a run must have: the flag's word if there is one, never below a floor."""
    wanted = choice.require or policy.require
    if choice.allow_unconfined and choice.require is None:
        wanted = Requirement.NONE
    for ceiling in layers.hard:
        if ceiling.require is not None:
            wanted = stronger(wanted, ceiling.require.value)
    return wanted


def choose(policy: Policy, layers: Layers, probe: Probe, choice: Choice) -> Chosen:
    """Choose a backend, or refuse with the reason and the remedy. Never a silent step down."""
    passthrough = Passthrough()
    if policy.unconfined is not None:
        return Chosen(passthrough, probe)
    requirement = required(policy, layers, choice)
    wanted = choice.backend or ("seatbelt" if probe.platform == "darwin" else "linux")
    candidates = [] if wanted == passthrough.name else [b for b in BACKENDS if b.name == wanted]
    reasons: list[Problem] = []
    for backend in candidates:
        lacking = backend.problems(probe)
        if lacking:
            reasons += lacking
            continue
        missing = backend.guarantees(policy, probe).missing(requirement)
        if not missing:
            return Chosen(backend, probe)
        reasons.append(
            error(
                "guarantees-missing",
                f"the backend `{backend.name}` can't enforce {', '.join(missing)} here, and "
                f"`require: {requirement.value}` needs it",
            )
        )
    if requirement is Requirement.NONE and (not reasons or choice.backend in {None, passthrough.name}):
        return Chosen(passthrough, probe)
    return Chosen(None, probe, _refusal(choice, reasons))


def _refusal(choice: Choice, reasons: list[Problem]) -> Problem:
    """Put the reasons into one refusal."""
    if not reasons:
        known = ", ".join(f"`{backend.name}`" for backend in BACKENDS)
        if choice.backend in {backend.name for backend in BACKENDS}:
            message = f"the backend `{choice.backend}` does not confine, and this run must be confined"
            return error("backend-refused", message, help="say `--require none` where no floor forbids it")
        return error("backend-unknown", f"there is no backend `{choice.backend}`", help=f"there are {known}")
    message = "; ".join(reason.message for reason in reasons)
    remedies = [reason.help for reason in reasons if reason.help]
    help_ = "; ".join([*remedies, "or accept no confinement with `--allow-unconfined`"])
    return error(reasons[0].rule, f"not started: {message}", help=help_)
