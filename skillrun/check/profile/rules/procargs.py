"""Every kernel value may be read, the arguments and environment of all the user's processes among them.

`kern.procargs2` is read by sysctl(3) for any process of the same user; tokens are often passed that way
(nolabs-ai/nono#1821, sandbox-runtime#160, measured).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.profile.finding import Finding, Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Find them."""
    decision = subject.allowing("sysctl-read", "kern.procargs2")
    if decision is not None and decision.rule is not None and "default" not in decision.rule.operations:
        message = "`kern.procargs2` may be read: arguments and environment of every process of the user"
        yield subject.found(
            "procargs",
            Severity.ERROR,
            message,
            change='name the values: `(allow sysctl-read (sysctl-name "hw.ncpu"))`',
            span=decision.rule.span,
        )
