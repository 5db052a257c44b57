"""Policies made by hand, of a Mac that is not there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from skillrun.permissions.capabilities import Limits
from skillrun.permissions.grant import Requirement
from skillrun.sandbox.landscape import Landscape, Spot
from skillrun.sandbox.policy import Access, Kept, PathRule, Policy
from skillrun.sandbox.seatbelt.evaluate import Evaluator
from skillrun.sandbox.seatbelt.parse import parse
from skillrun.sandbox.seatbelt.render import render
from skillrun.skills.digest import FileIdentity

if TYPE_CHECKING:
    from collections.abc import Iterable

SKILL = "/Users/u/skills/demo"
SCRATCH = "/private/tmp/skillrun-501/skillrun-a/runs/0123456789abcdef"


def policy(
    *,
    read: Iterable[str] = (),
    write: Iterable[str] = (),
    files: Iterable[str] = (),
    links: Iterable[str] = (),
    denied: Iterable[str] = (),
    protected: Iterable[str] = (),
    network: bool = False,
    argv: tuple[str, ...] = ("/usr/bin/python3", f"{SKILL}/scripts/main.py"),
) -> tuple[Policy, Landscape]:
    """Make a policy; paths in `files` are plain files, the others are folders."""
    rules = [PathRule(Path(path), Access.WRITE, "granted") for path in write]
    rules.append(PathRule(Path(SCRATCH), Access.WRITE, "scratch of this run", own=True))
    rules += [PathRule(Path(path), Access.READ, "granted") for path in read]
    rules.append(PathRule(Path(SKILL), Access.READ, "the skill's own folder"))
    kept = [Kept(Path("/private/tmp/skillrun-501"), "scratch of other runs", readable=False)]
    kept += [Kept(Path(path), "denied", readable=False) for path in denied]
    kept += [Kept(Path(path), "protected", readable=True) for path in protected]
    plain = set(files)
    spots = {
        rule.path: Spot(1, number, folder=str(rule.path) not in plain) for number, rule in enumerate(rules)
    }
    made = Policy(
        skill=Path(SKILL),
        workspace=Path("/Users/u/work"),
        scratch=Path(SCRATCH),
        cwd=Path("/Users/u/work"),
        argv=argv,
        environ=(("HOME", SCRATCH), ("PATH", "/usr/bin:/bin")),
        script=Path(f"{SKILL}/scripts/main.py"),
        script_identity=FileIdentity(1, 1, 1, 1, "0" * 64),
        interpreter=None,
        rules=tuple(rules),
        kept=tuple(kept),
        links=tuple(Path(link) for link in links),
        network=network,
        searched=True,
        timeout=60,
        limits=Limits(1 << 30, 100, 1 << 30, 1 << 20),
        require=Requirement.CONFINED,
        unconfined=None,
    )
    return made, Landscape(spots, {}, kept=tuple(kept))


def evaluator(made: tuple[Policy, Landscape]) -> Evaluator:
    """Render a policy and read the profile back."""
    rendered = render(*made)
    profile = parse(rendered.text, dict(rendered.parameters))
    assert profile.loads, profile.faults
    return Evaluator(profile)
