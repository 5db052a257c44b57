"""Docker's socket may be connected to: whoever talks to docker is root on its machine, and outside the sandbox.

A denial of `file-read*` and `file-write*` on the socket does not stop a connection (microsoft/mxc#754).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.check.profile.finding import Confidence, first_of_each_rule
from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.profile.finding import Finding, Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Find them."""
    sockets = [
        f"unix:{path}"
        for path in (
            "/private/var/run/docker.sock",
            *(f"{home}/.docker/run/docker.sock" for home in subject.homes),
        )
    ]
    for target, decision, rule in first_of_each_rule(subject, "network-outbound", sockets):
        if "default" in rule.operations:
            continue  # `allow-default` says it
        message = f"`{target.removeprefix('unix:')}` may be connected to"
        change = 'write `(deny network-outbound (literal "/private/var/run/docker.sock"))`, or name the sockets that are needed'
        yield subject.found(
            "docker-socket",
            Severity.ERROR,
            message,
            change=change,
            span=rule.span,
            confidence=Confidence.HIGH if decision.certain else Confidence.MEDIUM,
        )
