"""Every unix socket of the machine may be connected to, because the network was allowed.

connect() to a socket is `network-outbound`, matched by its path; no file rule stops it (microsoft/mxc#754). Behind
sockets are docker, ssh-agent, databases and editors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.profile.finding import Finding, Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Find them."""
    for rule in subject.rules:
        bare = not rule.filters or any(
            one.name == "remote" and one.arguments[:1] == ("unix-socket",) and not one.children
            for one in subject.positive(rule)
        )
        if rule.allow and bare and {"network-outbound", "network*"} & set(rule.operations):
            message = f"`{rule.written[0]}` is allowed for every unix socket too"
            change = "write `(allow network-outbound (remote ip))`, and name the sockets that are needed"
            yield subject.found("unix-sockets", Severity.WARNING, message, change=change, span=rule.span)
