"""Complete a grant to a policy: add what the run needs by itself, and what it must never change."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skillrun import resources
from skillrun.permissions.capabilities import below
from skillrun.permissions.grant import Cwd
from skillrun.sandbox.environment import environment
from skillrun.sandbox.policy import Access, Kept, PathRule, Policy

if TYPE_CHECKING:
    from pathlib import Path

    from skillrun.permissions.grant import Grant
    from skillrun.permissions.place import Place
    from skillrun.sandbox.search import Search
    from skillrun.skills.digest import FileIdentity
    from skillrun.skills.model import Interpreter, Script, Skill


@dataclass(frozen=True, slots=True)
class Subject:
    """What is to be started: a script of a skill, its interpreter if it has one, and its arguments."""

    skill: Skill
    script: Script
    identity: FileIdentity
    interpreter: Interpreter | None
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Guarded:
    """Paths besides the grant's that matter to a run (DESIGN 5, law 8).

    A script may read `readable` ones but never change them: skill roots, configuration, skillrun's own
    files, interpreters. Of `listed` folders only the entries matter, because programs or modules are
    found in them by name; a write root deeper down changes nothing. `hidden` ones are other runs'
    scratch folders and skillrun's state. `programs` is a folder that every run may read.
    """

    programs: Path
    readable: tuple[tuple[Path, str], ...] = ()
    listed: tuple[tuple[Path, str], ...] = ()
    hidden: tuple[tuple[Path, str], ...] = ()

    def with_readable(self, more: tuple[tuple[Path, str], ...]) -> Guarded:
        """Return the same with more that may be read and not changed."""
        return replace(self, readable=(*self.readable, *more))


def complete(grant: Grant, place: Place, subject: Subject, *, guarded: Guarded, found: Search) -> Policy:
    """Make the policy. Pure: every path comes resolved with the arguments."""
    command = _command(subject)
    rules = _rules(grant, place, subject, programs=guarded.programs)
    writes = tuple(rule.path for rule in rules if rule.access is Access.WRITE and rule.path != place.scratch)
    return Policy(
        skill=place.skill,
        workspace=place.workspace,
        scratch=place.scratch,
        cwd=place.skill if grant.cwd is Cwd.SKILL else place.workspace,
        argv=(*command, *subject.arguments),
        environ=environment(grant, place, subject.interpreter, programs=guarded.programs),
        script=subject.script.path,
        script_identity=subject.identity,
        interpreter=subject.interpreter,
        rules=rules,
        kept=(
            *(Kept(path, kind, readable=False) for path, kind in found.doors),
            *_kept(grant, place, subject, guarded=guarded, writes=writes, found=found),
        ),
        searched=found.complete,
        links=(*grant.links, *(subject.interpreter.links if subject.interpreter else ())),
        network=bool(grant.capabilities.network),
        timeout=grant.capabilities.timeout,
        limits=grant.capabilities.limits,
        require=grant.require,
        unconfined=grant.unconfined,
        warnings=grant.warnings,
    )


def _command(subject: Subject) -> tuple[str, ...]:
    """Return what is executed and the arguments that come before the caller's."""
    script = str(subject.script.path)
    if subject.interpreter is None:
        return (script,)
    return (str(subject.interpreter.path), *subject.interpreter.args, script)


def _rules(grant: Grant, place: Place, subject: Subject, *, programs: Path) -> tuple[PathRule, ...]:
    """Give the grant's paths and the run's own; of two rules for one path the wider one stays."""
    rights = grant.capabilities
    rules = [PathRule(path, Access.WRITE, "granted for writing") for path in sorted(rights.fs_write)]
    rules.append(PathRule(place.scratch, Access.WRITE, "scratch of this run", own=True))
    rules += [
        PathRule(path, Access.READ, "granted for reading")
        for path in sorted(rights.fs_read - rights.fs_write)
    ]
    rules.append(PathRule(place.skill, Access.READ, "the skill's own folder"))
    rules.append(PathRule(programs, Access.READ, "`python` and `python3` by both names", own=True))
    if subject.interpreter is not None:
        own = (subject.interpreter.real, *subject.interpreter.prefixes)
        rules += [PathRule(path, Access.READ, "the interpreter") for path in own]
    first: dict[Path, PathRule] = {}
    for rule in rules:
        first.setdefault(rule.path, rule)
    return tuple(first.values())


def _kept(
    grant: Grant,
    place: Place,
    subject: Subject,
    *,
    guarded: Guarded,
    writes: tuple[Path, ...],
    found: Search,
) -> tuple[Kept, ...]:
    """Give what is kept from the script, hidden paths first: a path that is both is hidden."""
    kept = [Kept(denied.path, denied.reason, readable=False) for denied in grant.denied]
    kept += [Kept(path, reason, readable=False) for path, reason in guarded.hidden]
    if writes:
        kept.append(Kept(place.skill, "a script can't change its own skill", readable=True))
        kept += [Kept(path, reason, readable=True) for path, reason in guarded.readable]
        kept += [
            Kept(path, reason, readable=True)
            for path, reason in guarded.listed
            if not any(below(root, path) for root in writes)
        ]
        if subject.interpreter is not None:
            own = (subject.interpreter.real, *subject.interpreter.links, *subject.interpreter.prefixes)
            kept += [Kept(path, "an interpreter", readable=True) for path in own]
        kept += [Kept(path, "a skill", readable=True) for path in found.skills if path not in writes]
        kept += [
            Kept(path, "it names the repository that git uses", readable=True) for path in found.git_files
        ]
        kept += [
            Kept(path / name, "as in .git", readable=True)
            for path in found.bare
            for name in ("HEAD", *control_names())
        ]
        kept += protected_names(writes, found.bases)
    first: dict[Path, Kept] = {}
    for entry in kept:
        first.setdefault(entry.path, entry)
    return tuple(first.values())


@functools.cache
def control_names() -> tuple[str, ...]:
    """Return what git runs or obeys in the folder of a repository, however that is called."""
    names = (line["name"] for line in resources.table("protected")["names"])
    return tuple(name.removeprefix(".git/").rstrip("/") for name in names if name.startswith(".git/"))


@functools.lru_cache(maxsize=64)
def protected_names(roots: tuple[Path, ...], bases: tuple[Path, ...]) -> tuple[Kept, ...]:
    """Give the paths of `profiles/protected.yaml` at, above and in each write root, and in folders that have any.

    Above, because a root may itself lie in a protected folder, such as `.git/hooks`.
    """
    inside = {base for base in bases if any(below(base, root) for root in roots)}
    places = sorted({base for root in roots for base in (root, *root.parents)} | inside)
    found = [
        Kept(place / line["name"], line["why"], readable=True)
        for place in places
        for line in resources.table("protected")["names"]
    ]
    # Of a folder above a root only what the root lies in, or what lies in the root, can be changed from there; but see
    # `search.standing_above`.
    return tuple(kept for kept in found if any(_related(kept.path, root) for root in roots))


def _related(path: Path, root: Path) -> bool:
    return path == root or below(path, root) or below(root, path)


@functools.cache
def quarantined() -> frozenset[str]:
    """Return the protected names that are moved away where a run made them."""
    return frozenset(line["name"] for line in resources.table("protected")["names"] if line.get("quarantine"))


@functools.cache
def first_parts() -> frozenset[str]:
    """Return the first part of every protected name: what a search looks for."""
    return frozenset(line["name"].split("/")[0] for line in resources.table("protected")["names"])
