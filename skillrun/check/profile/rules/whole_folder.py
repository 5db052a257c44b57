"""All of a folder is opened that holds far more than is needed: devices, other programs' data, installed programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skillrun.check.profile.finding import PATH_FILTERS
from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.profile.finding import Finding, Subject

_WHOLE: Final = {
    "/dev": "disks, terminals of others, input devices",
    "/Library": "start items, keychains and settings of the whole machine",
    "/opt": "programs that everybody runs",
    "/opt/homebrew": "programs that the user runs",
    "/usr/local": "programs that everybody runs",
    "/private/tmp": "other programs' sockets and files",
    "/private/var/folders": "every user's temporary files and caches",
}


def find(subject: Subject) -> Iterator[Finding]:
    """Find them."""
    for rule in subject.rules:
        if not rule.allow:
            continue
        writes = any(
            operation.startswith("file-write") or operation == "file*" for operation in rule.operations
        )
        for one in subject.positive(rule):
            for text in one.arguments if one.name in PATH_FILTERS - {"literal"} else ():
                folder = str(text).lstrip("^").rstrip("/")
                if folder in _WHOLE and (writes or folder == "/dev"):
                    severity = Severity.ERROR if writes else Severity.WARNING
                    message = f"all of `{folder}` is opened: {_WHOLE[folder]}"
                    yield subject.found(
                        "whole-folder", severity, message, change="name what is needed in it", span=one.span
                    )
