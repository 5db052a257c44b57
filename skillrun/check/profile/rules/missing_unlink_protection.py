"""A path that may not be written can be moved out of the way: a folder above it may be renamed.

Rename asks for `file-write-unlink` of the folder, not of what is in it (anthropic-experimental/sandbox-runtime#8,
posthog#87021). Behind the new name another path lies, that no rule names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.profile.finding import Finding, Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Find them."""
    for rule in subject.compared:
        if rule.allow or not any(
            operation.startswith("file-write") or operation == "file*" for operation in rule.operations
        ):
            continue
        for one in rule.filters:
            for text in one.arguments if one.name in {"literal", "subpath"} else ():
                path = str(text)
                above = path.rpartition("/")[0]
                if subject.evaluator.decide("file-write-create", path).allowed or not above:
                    continue
                decision = subject.allowing("file-write-unlink", above)
                made = subject.allowing("file-write-create", f"{above}-moved")
                if decision is not None and made is not None:
                    message = f"`{above}` may be renamed, and `{path}` in it is then protected by no rule"
                    change = f'add `(deny file-write-unlink (literal "{above}"))`, and the same for the folders above it'
                    yield subject.found(
                        "missing-unlink-protection", Severity.WARNING, message, change=change, span=one.span
                    )
