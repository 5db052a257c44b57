"""A program is started outside the sandbox: `(with no-sandbox)`.

Whatever it can be made to do, it does unconfined. Some profiles do this for ps, which is set-uid.
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
        for modifier in rule.modifiers:
            if modifier.name in {"no-sandbox", "default-sandbox"} and rule.allow:
                severity = Severity.WARNING if rule.filters else Severity.ERROR
                message = "what is started by this rule leaves the sandbox"
                yield subject.found(
                    "leaves-sandbox",
                    severity,
                    message,
                    change="drop the modifier; set-uid programs then fail",
                    span=rule.span,
                )
