"""Lock: `skillrun.lock` pins, for each skill, the files and the permissions that somebody approved.

The text is a function of the tree and the ceiling alone: sorted, in the names of a project's place, without
times, users and machines.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from skillrun.check.rights import Rights, changes, joined, rights
from skillrun.check.rules import lock_file, lock_permission, lock_stale, not_locked
from skillrun.check.store import read_store
from skillrun.errors import ConfigError, SkillError
from skillrun.problem import At, Severity, error
from skillrun.skills.digest import digest_of, parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from skillrun.check.finding import Finding
    from skillrun.check.subject import Subject
    from skillrun.skills.digest import Part

FILE_NAME: Final = "skillrun.lock"
SCHEMA: Final = "skillrun.lock/1"
_MOST_FILES: Final = 500
"""Files of one skill that are listed one by one; above that the digest alone tells that something moved."""
_SHORT: Final = 16  # hexadecimal digits of a file: they name what moved, the digest proves it
_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class Entry:
    """What was approved for one skill: its digest, its rights, and what each file was; None: not listed."""

    digest: str
    rights: Rights
    files: Mapping[str, str] | None


@dataclass(frozen=True, slots=True)
class Lock:
    """The entries by the skill's folder, relative to the project. `path` is where the file lies."""

    path: Path
    entries: Mapping[str, Entry]

    def text(self) -> str:
        """Return the file's text: the same for equal entries, everywhere."""
        skills = {label: _data(entry) for label, entry in sorted(self.entries.items())}
        return (
            json.dumps({"schema": SCHEMA, "skills": skills}, indent=2, ensure_ascii=True, allow_nan=False)
            + "\n"
        )

    def with_entries(self, subjects: Iterable[Subject], gone: Iterable[str] = ()) -> Lock:
        """Return the lock with some skills approved as they are now, and others taken out. SkillError: one can't be read."""
        entries = {label: entry for label, entry in self.entries.items() if label not in set(gone)}
        entries.update({subject.label: entry_of(subject) for subject in subjects})
        return Lock(self.path, entries)


def read_lock(path: Path, *, at: Path | None = None) -> Lock | None:
    """Read a lock; None when there is none. ConfigError when it is no lock; `at` is how messages name the file."""
    data = read_store(path, SCHEMA, at=at)
    if data is None:
        return None
    try:
        skills = data["skills"]
        return Lock(at or path, {_label(label): _entry(value) for label, value in skills.items()})
    except (KeyError, TypeError, ValueError, AttributeError) as wrong:
        message = f"the lock is damaged: {type(wrong).__name__}: {wrong}"
        raise ConfigError(
            error("lock-damaged", message, at=At(at or path), help="restore it, or approve anew")
        ) from None


def entry_of(subject: Subject) -> Entry:
    """Return a skill as it is now. SkillError when it can't be read or does not run."""
    held = rights(subject)
    if held is None:
        raise SkillError(*(problem for problem in subject.problems if problem.severity is Severity.ERROR))
    found = parts(subject.skill.path)
    files = {_name(part.path): _content(part) for part in found} if len(found) <= _MOST_FILES else None
    return Entry(digest_of(found), held, files)


def compare(
    lock: Lock | None, subjects: Sequence[Subject], *, path: Path, roots: Sequence[str]
) -> Iterator[Finding]:
    """Give what differs from the lock. `roots` are those that were looked through, relative to the project.

    An entry is gone only where its folder was looked through.
    """
    entries = {} if lock is None else lock.entries
    labels = set()
    for subject in subjects:
        labels.add(subject.label)
        if subject.grant is None:
            continue  # it does not run, which is a finding already
        entry = entries.get(subject.label)
        if entry is None:
            yield not_locked.RULE.finding(
                subject,
                "nobody has approved this skill",
                key=(),
                at=subject.at,
                help=f"`skillrun lock --approve {subject.label}`",
            )
        else:
            yield from differences(subject, entry)
    for label in sorted(set(entries) - labels):
        if any(root in (".", label) or label.startswith(f"{root}/") for root in roots):
            yield lock_stale.RULE.finding(
                None,
                f"the lock has `{label}`, which is not here",
                key=(label,),
                at=At(path),
                help=f"`skillrun lock --approve {label}` removes it",
            )


def differences(subject: Subject, entry: Entry) -> Iterator[Finding]:
    """Give what differs between a skill and its entry: permissions, then files."""
    approve = f"look at it, then `skillrun lock --approve {subject.label}`"
    now = rights(subject)
    for change in changes(entry.rights, now) if now is not None else ():
        yield lock_permission.RULE.finding(
            subject,
            f"not as approved: {joined((change,))}",
            key=(change.capability, change.effect.value, change.before or "", change.after or ""),
            at=subject.place_of(change.capability.partition(".")[0]),
            severity=Severity.ERROR if change.effect.more else Severity.WARNING,
            help=approve,
        )
    try:
        found = parts(subject.skill.path)
    except SkillError as wrong:
        yield lock_file.RULE.finding(
            subject, wrong.problem.message, key=("unreadable",), at=subject.at, severity=Severity.ERROR
        )
        return
    if digest_of(found) != entry.digest:
        moved = _moved(entry.files, {_name(part.path): _content(part) for part in found})
        named = ", ".join(moved[:_SHOWN]) + (", …" if len(moved) > _SHOWN else "")
        yield lock_file.RULE.finding(
            subject,
            f"not the files that were approved: {named or 'their digest differs'}",
            key=tuple(moved),
            at=subject.at,
            help=approve,
        )


def _moved(old: Mapping[str, str] | None, new: Mapping[str, str]) -> list[str]:
    if old is None:
        return []
    words = {name: "changed" for name in old.keys() & new.keys() if old[name] != new[name]}
    words.update(dict.fromkeys(new.keys() - old.keys(), "added"))
    words.update(dict.fromkeys(old.keys() - new.keys(), "removed"))
    return [f"`{name}` {words[name]}" for name in sorted(words)]


def _data(entry: Entry) -> dict[str, Any]:
    files = None if entry.files is None else dict(sorted(entry.files.items()))
    return {"digest": entry.digest, "rights": entry.rights.data(), "files": files}


def _entry(data: Any) -> Entry:
    files = data["files"]
    if files is not None and not all(isinstance(value, str) for value in files.values()):
        raise TypeError("files are texts")
    digest = data["digest"]
    if not isinstance(digest, str) or not digest.startswith("sha256:"):
        raise ValueError("a digest begins with sha256:")
    return Entry(digest, Rights.from_data(data["rights"]), files)


def _label(label: str) -> str:
    if label.startswith("/") or ".." in label.split("/"):
        raise ValueError(f"`{label}` is outside the project")
    return label


def _content(part: Part) -> str:
    if part.kind == b"l":
        return f"link {_name(part.content)}"
    return (
        f"{part.content.hex()[:_SHORT]}{' x' if part.executable == b'x' else ''}"
        if part.kind == b"f"
        else part.kind.decode()
    )


def _name(path: bytes) -> str:
    return path.decode("utf-8", "backslashreplace")
