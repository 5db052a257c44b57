"""a folder that one skill writes and another, with a network, reads.

Two skills that are harmless alone: the first reads what the second may not and writes where the second reads;
the second sends.

**Why it matters.** A model that calls both moves the data from one to the other without any grant being broken.

**Example.** `summarise` reads `./private/` and writes `./out/`; `publish` reads `./out/` and has a network.

**What to do.** Give each skill an output folder of its own, or let the second read only what a person put
there. Looked at after the ceiling has been applied: what is cut is no flow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.check.project import written
from skillrun.check.rule import Rule
from skillrun.permissions.capabilities import inside
from skillrun.permissions.grant import Capability
from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillrun.check.finding import Finding
    from skillrun.check.project import Project
    from skillrun.check.subject import Subject
    from skillrun.permissions.capabilities import Capabilities

_MOST = 10  # senders named in one finding


def find(subjects: Sequence[Subject], project: Project) -> Iterator[Finding]:  # noqa: ARG001 - the shape of every rule
    """Give one finding for each writer, with the skills that could send what it writes."""
    granted = [(subject, subject.grant.capabilities) for subject in subjects if subject.grant is not None]
    senders = [(subject, rights) for subject, rights in granted if rights.network and rights.fs_read]
    for writer, rights in granted if senders else ():
        if not rights.fs_write or rights.network:
            continue
        found = [sender for sender, theirs in senders if sender is not writer and _flows(rights, theirs)]
        if found:
            names = ", ".join(f"`{sender.label}`" for sender in found[:_MOST]) + (
                ", …" if len(found) > _MOST else ""
            )
            roots = ", ".join(f"`{written(root)}`" for root in sorted(rights.fs_write))
            yield RULE.finding(
                writer,
                f"writes {roots}, which {names} can read and send",
                key=tuple(sorted(sender.label for sender in found)),
                at=next((one.at for one in writer.request.of(Capability.FS_WRITE)), writer.at),
                related=[
                    sender.request.of(Capability.NETWORK)[0].at
                    for sender in found[:_MOST]
                    if sender.request.of(Capability.NETWORK)
                ],
                help="give each skill an output folder of its own",
            )


def _flows(writer: Capabilities, sender: Capabilities) -> bool:
    """Whether the sender reads what the writer writes, and the writer knows something that the sender can't read itself."""
    reached = any(
        inside(out, root) or inside(root, out) for out in writer.fs_write for root in sender.fs_read
    )
    return reached and any(not sender.allows_read(root) for root in writer.fs_read)


RULE = Rule("flow", Severity.WARNING, __name__, all=find)
