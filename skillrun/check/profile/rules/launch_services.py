"""Programs can be started outside the sandbox by LaunchServices.

`open` asks launchservicesd to start an application; it runs unconfined, with arguments that the script chose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skillrun.check.profile.finding import Confidence, first_of_each_rule
from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.profile.finding import Finding, Subject

_SERVICES: Final = (
    "com.apple.coreservices.launchservicesd",
    "com.apple.lsd.open",
    "com.apple.lsd.mapdb",
    "com.apple.lsd.xpc",
)


def find(subject: Subject) -> Iterator[Finding]:
    """Find them."""
    for name, decision, rule in first_of_each_rule(subject, "mach-lookup", _SERVICES):
        if rule.filters:  # a rule without a filter is `blanket-mach-lookup`
            message = f"programs outside the sandbox can be started through `{name}`"
            yield subject.found(
                "launch-services",
                Severity.ERROR,
                message,
                change="drop the service; a script starts its programs itself",
                span=rule.span,
                confidence=Confidence.HIGH if decision.certain else Confidence.MEDIUM,
            )
    opened = subject.allowing("lsopen", "x")
    if opened is not None and opened.rule is not None and "default" not in opened.rule.operations:
        message = "`lsopen` is allowed: programs outside the sandbox can be started"
        yield subject.found(
            "launch-services", Severity.ERROR, message, change="drop `lsopen`", span=opened.rule.span
        )
