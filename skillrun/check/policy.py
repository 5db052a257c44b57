"""Policy: ceiling, lock, baseline and ignores, from here or from a version that a change can't touch.

A pull request is not believed about what guards it. With a base, all four come from there, and whatever
the change does to them is a finding that nothing hides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skillrun.check import engine, ignores
from skillrun.check.base import Base, open_base, top_of
from skillrun.check.baseline import Baseline, read_baseline
from skillrun.check.ignores import Belief
from skillrun.check.lock import Lock, read_lock
from skillrun.check.rules import policy_changed
from skillrun.permissions.project import FILE_NAME as CEILING_NAME
from skillrun.problem import At
from skillrun.skills.disk import read_start

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from skillrun.check.finding import Finding
    from skillrun.check.project import Project
    from skillrun.check.session import Session
    from skillrun.check.subject import Subject

_MOST: Final = 64 << 20  # bytes of a policy file that are compared


@dataclass(frozen=True, slots=True)
class Policy:
    """What guards a project. `findings` are changes to it; `belief` is None where ignores are simply believed."""

    project: Project
    lock: Lock | None
    baseline: Baseline | None
    findings: tuple[Finding, ...] = ()
    belief: Belief | None = None


@dataclass(frozen=True, slots=True)
class Files:
    """Where lock and baseline lie, physical paths; each need not exist."""

    lock: Path
    baseline: Path


def own_policy(session: Session, files: Files) -> Policy:
    """Take the policy from the project as it lies here."""
    return Policy(session.project(), read_lock(files.lock), read_baseline(files.baseline))


def policy_from(name: str, session: Session, files: Files, current: Path) -> Policy:
    """Take the policy from a revision or a folder. ConfigError and UsageError as for what is read there."""
    guards = _guards(session, files)
    top = top_of(session.folder)
    paths = [str(path.relative_to(top)) for path in guards if path.is_relative_to(top)]
    with open_base(name, session.folder, current, session.host, paths) as base:
        project = session.guarded(base)
        lock_there, baseline_there = base.counterpart(files.lock), base.counterpart(files.baseline)
        lock = read_lock(lock_there or files.lock, at=files.lock)
        baseline = read_baseline(baseline_there or files.baseline, at=files.baseline)
        changes = tuple(_changes(guards, base))
    subjects = engine.subjects_of(session.catalog(), project)
    belief = _belief(name, session, subjects, current)
    return Policy(project, lock, baseline, changes, belief)


def _guards(session: Session, files: Files) -> tuple[Path, ...]:
    """Name the files that a policy is made of, from the repository's root down."""
    top = top_of(session.folder)
    folders = [
        folder
        for folder in (session.folder, *session.folder.parents)
        if folder == top or top in folder.parents
    ]
    found = [folder / CEILING_NAME for folder in reversed(folders)]
    ceiling = session.ceiling
    if not isinstance(ceiling, str) and ceiling is not None:
        found.append(ceiling.parent.resolve() / ceiling.name)
    return tuple(dict.fromkeys((*found, files.lock, files.baseline)))


def _changes(guards: Sequence[Path], base: Base) -> Iterator[Finding]:
    for path in guards:
        there = base.counterpart(path)
        if there is None:
            continue  # outside of the repository, where a change can't reach it
        before, after = _bytes(there), _bytes(path)
        if before != after:
            word = "adds" if before is None else "removes" if after is None else "changes"
            label = str(path.relative_to(base.real_top))
            yield policy_changed.RULE.finding(
                None,
                f"this change {word} `{label}`, which is not believed before somebody has merged it",
                key=("file", label, word),
                at=At(path),
                help=f"what counts is the one of `{base.name}`; look at the change and decide",
            )


def _bytes(path: Path) -> bytes | None:
    """Return a file's bytes; what is no regular file is some other content, never the same as a file's."""
    try:
        return read_start(path, _MOST)[0]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as wrong:
        return b"\0" + type(wrong).__name__.encode()


def _belief(name: str, session: Session, subjects: Sequence[Subject], current: Path) -> Belief:
    """Check the skills that have ignores in the other version, and see what was hidden there."""
    labels = {subject.label for subject, _ in ignores.collect(subjects) if not subject.label.startswith("/")}
    if not labels:
        return Belief(frozenset(), frozenset())
    top = top_of(session.folder)
    inner = session.folder.relative_to(top)
    paths = [] if "." in labels else [str(inner / label) for label in sorted(labels)]
    with open_base(name, session.folder, current, session.host, paths) as base:
        roots = [base.folder / label for label in sorted(labels) if (base.folder / label).is_dir()]
        project = session.base_project(base)
        catalog = session.catalog(roots)
        there = engine.subjects_of(catalog, project)
        report = engine.check(catalog, project, subjects=there)
        known = frozenset((subject.label, *ignore.key) for subject, ignore in ignores.collect(there))
    return Belief(known, frozenset(hidden.finding.fingerprint for hidden in report.ignored))
