"""Refusing: what speaks against a run before anything is started."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.launch.verdict import too_large
from skillrun.problem import Problem, error

if TYPE_CHECKING:
    from skillrun.launch.ready import Ready


def refusal_of(ready: Ready, *, strict: bool) -> Problem | None:
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
