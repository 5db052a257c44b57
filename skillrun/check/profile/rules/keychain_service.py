"""The keychain can be asked for passwords, through the services that hold it.

File rules on `Library/Keychains` do not stop that: securityd reads the files, not the script (always-further/nono
denies all five).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skillrun.check.profile.finding import Confidence, first_of_each_rule
from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.profile.finding import Finding, Subject

_SERVICES: Final = (
    "com.apple.SecurityServer",
    "com.apple.securityd",
    "com.apple.securityd.xpc",
    "com.apple.secd",
    "com.apple.security.agent",
    "com.apple.security.keychaind",
)


def find(subject: Subject) -> Iterator[Finding]:
    """Find them."""
    for name, decision, rule in first_of_each_rule(subject, "mach-lookup", _SERVICES):
        if rule.filters:  # a rule without a filter is `blanket-mach-lookup`
            message = f"the keychain is reached through `{name}`"
            yield subject.found(
                "keychain-service",
                Severity.ERROR,
                message,
                change="drop the service; certificates are checked by `com.apple.trustd` alone",
                span=rule.span,
                confidence=Confidence.HIGH if decision.certain else Confidence.MEDIUM,
            )
