"""a network that is used and not asked for.

A script calls something that connects, or imports a client and nothing else explains it, and the request has no
network, or a list that the host is not on.

**Why it matters.** Under skillrun the call fails. Everywhere else it goes through, and nothing in the skill
says so.

**How sure.** A call of a known name: high. An import alone, or a command inside a string: medium. A module that only
listens: low. What connects
is listed in `profiles/check/network.yaml`; a library that is not there is not seen.

**Example.** `requests.get("https://api.example.com/v1")` in a skill without `network`.

**What to do.** Write `network: [api.example.com:443]`, or take the call out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.check.rule import Rule
from skillrun.check.static.use import Kind
from skillrun.permissions.bounds import network_of
from skillrun.permissions.endpoint import Endpoint
from skillrun.permissions.grant import Capability
from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.finding import Finding
    from skillrun.check.project import Project
    from skillrun.check.subject import Subject


def find(subject: Subject, project: Project) -> Iterator[Finding]:  # noqa: ARG001 - the shape of every rule
    """Give each host once a script, and once a script what connects nobody knows where."""
    asked = network_of(one.endpoint or bool(one.value) for one in subject.request.of(Capability.NETWORK))
    seen: set[tuple[str, str]] = set()
    for used in subject.uses(Kind.NETWORK):
        host = used.use.value
        if asked.everything or (host is None and asked):
            continue
        rule = None if host is None else Endpoint.parse(host)
        if rule is not None and asked.allows(rule.host, rule.ports[0]):
            continue
        key = (used.script.name, host or "")
        if key in seen or (host is None and any(script == used.script.name for script, _ in seen)):
            continue
        seen.add(key)
        where = f" to `{host}`" if host is not None else ""
        does = (
            "imports what is there to connect" if used.use.what.startswith("import ") else f"connects{where}"
        )
        yield RULE.finding(
            subject,
            f"`{used.script.name}` {does} (`{used.use.what}`), and the skill does not ask for "
            f"{'that host' if asked else 'a network'}",
            key=key,
            at=used.at,
            confidence=used.use.confidence,
            help=f"write `network: [{host}]`"
            if host is not None
            else "write `network: [HOST:PORT]` with the hosts it talks to",
        )


RULE = Rule("undeclared-network", Severity.WARNING, __name__, one=find)
