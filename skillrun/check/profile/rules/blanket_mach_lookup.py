"""Every service of the system may be asked.

Behind mach services are the keychain, the pasteboard, LaunchServices and whatever else runs as the user or as
root: they act outside the sandbox, on request. A list of denied ones misses those of the next release.
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
        if rule.allow and not rule.filters and {"mach-lookup", "mach*"} & set(rule.operations):
            message = f"`{rule.written[0]}` is allowed without naming a service"
            change = 'name the services: `(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))`'
            yield subject.found("blanket-mach-lookup", Severity.ERROR, message, change=change, span=rule.span)
