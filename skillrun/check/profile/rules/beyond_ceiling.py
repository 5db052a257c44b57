"""The profile allows more than the ceiling it is held against (`audit --ceiling`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.profile.finding import Finding, Subject

_WRITING: Final = {"file*", "file-write*", "file-write-data", "file-write-create"}
_READING: Final = {"file*", "file-read*", "file-read-data"}
# What it takes to start a program is no grant.
_SYSTEM: Final = (
    "/usr",
    "/bin",
    "/sbin",
    "/System",
    "/Library",
    "/dev",
    "/private/etc",
    "/private/var",
    "/opt/homebrew",
)


def find(subject: Subject) -> Iterator[Finding]:
    """Find them."""
    limits = subject.limits
    if limits is None:
        return
    for rule in subject.rules:
        if not rule.allow:
            continue
        for kind, operations, roots in (("write", _WRITING, limits.write), ("read", _READING, limits.read)):
            if not operations & set(rule.operations):
                continue
            for one in subject.positive(rule):
                for text in one.arguments if one.name in {"literal", "subpath", "prefix"} else ():
                    if not _inside(str(text), (*roots, *_SYSTEM) if kind == "read" else (*roots, "/dev")):
                        message = f"`{text}` may be {'written' if kind == 'write' else 'read'}, and the ceiling does not allow that"
                        yield subject.found(
                            "beyond-ceiling",
                            Severity.ERROR,
                            message,
                            change="drop it, or raise the ceiling",
                            span=one.span,
                        )
    decision = subject.allowing("network-outbound", "tcp://93.184.216.34:443")
    if decision is not None and decision.rule is not None and not limits.network:
        message = "the network may be used, and the ceiling does not allow that"
        yield subject.found(
            "beyond-ceiling",
            Severity.ERROR,
            message,
            change="drop it, or raise the ceiling",
            span=decision.rule.span,
        )


def _inside(path: str, roots: tuple[str, ...]) -> bool:
    return any(f"{path}/".startswith(f"{root.rstrip('/')}/") for root in roots) or path == "/"
