"""Decide: the one place where a request, the layers and a place become a grant (law 6).

request → resolve → intersect → deny and secrets → trust. Every command and the runner call this.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skillrun.errors import SkillError, UsageError
from skillrun.permissions.access import check_kept, open_named
from skillrun.permissions.arguments import argument_paths
from skillrun.permissions.bounds import Bounds, Root, place_ceiling, together
from skillrun.permissions.capabilities import inside
from skillrun.permissions.ceiling import stronger
from skillrun.permissions.config import Role
from skillrun.permissions.flags import Flags
from skillrun.permissions.grant import Capability, Cwd, Grant, Item, Requirement
from skillrun.permissions.intersect import Cut, Wanted, intersect
from skillrun.permissions.resolve import Resolver
from skillrun.permissions.spelled import Spelled, expand
from skillrun.permissions.subtract import subtract
from skillrun.permissions.survey import Ground, survey
from skillrun.permissions.trust import judge
from skillrun.permissions.voices import listen
from skillrun.problem import At, Problem, error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skillrun.permissions.access import NamedPath, Opened
    from skillrun.permissions.capabilities import Capabilities
    from skillrun.permissions.grant import Denied
    from skillrun.permissions.layers import Layers
    from skillrun.permissions.place import Place
    from skillrun.permissions.request import Asked
    from skillrun.permissions.voices import Voice
    from skillrun.skills.model import Skill

_PATHS: Final = frozenset({Capability.FS_READ, Capability.FS_WRITE})
_NO_FLAGS: Final = Flags()
_NO_LIMIT: Final = Root(Path("/"), At(preset="no limit"))
NO_SCRATCH: Final = Path("/${scratch}")
"""Stands for the scratch folder where none is made; it is below nothing but itself."""
ARGUMENT: Final = At(flag="argument")
"""Where a path came from that a person typed as an argument of the script."""
OPERATOR_ROLES: Final = frozenset({Role.OPERATOR, Role.NAMED})


@dataclass(frozen=True, slots=True)
class _Scene:
    """One decision's picture of the disk and of what limits it. The last `hard` layers are the ones no flag passes."""

    place: Place
    resolver: Resolver
    cwd: Path
    layers: tuple[Bounds, ...]
    hard: tuple[Bounds, ...]
    warnings: tuple[Problem, ...]

    @classmethod
    def set(cls, voice: Voice, layers: Layers, place: Place, resolver: Resolver) -> _Scene:
        """Resolve every layer that holds for a skill."""
        ceilings = (
            layers.base,
            *layers.projects,
            *(e.ceiling for e in voice.entries if e.ceiling),
            *layers.hard,
        )
        placed = [place_ceiling(ceiling, resolver, place) for ceiling in ceilings]
        bounds = tuple(one for one, _ in placed)
        return cls(
            place=place,
            resolver=resolver,
            cwd=place.skill if voice.request.cwd is Cwd.SKILL else place.workspace,
            layers=bounds,
            hard=bounds[len(bounds) - len(layers.hard) :],
            warnings=tuple(problem for _, problems in placed for problem in problems),
        )

    @property
    def require(self) -> Requirement:
        """The least enforcement that any layer wants."""
        found = Requirement.NONE
        for bounds in self.layers:
            found = stronger(found, bounds.ceiling.require.value) if bounds.ceiling.require else found
        return found

    def wanted(self, asked: Sequence[Asked], cwd: Path) -> tuple[Wanted, ...]:
        """Resolve what is asked for, each path once."""
        return tuple(self._one(one, cwd) if one.capability in _PATHS else Wanted(one) for one in asked)

    def _one(self, asked: Asked, cwd: Path) -> Wanted:
        spelled = Spelled(str(asked.value), asked.at, asked.base)
        try:
            text = expand(spelled, self.place, cwd)
        except ValueError as wrong:
            rule, kind = ("flag-value", UsageError) if asked.at.flag else ("request-path", SkillError)
            raise kind(error(rule, str(wrong), at=asked.at, help="write the whole path")) from None
        resolved = self.resolver.follow(text)
        left = resolved.escape(self.place.workspace, self.place.skill) if asked.at.flag else None
        if left is not None:
            # What a request names is judged by the ceiling; a flag raises it, so a planted link must not aim it.
            fault = f"a link leads out of `{left}`, to `{resolved.path}`"
            resolved = replace(resolved, fault=fault)
        return Wanted(asked, resolved, spelled.folder)


def decide(
    skill: Skill,
    layers: Layers,
    place: Place,
    *,
    digest: str,
    flags: Flags = _NO_FLAGS,
    arguments: Sequence[str] = (),
    named: Sequence[NamedPath] = (),
    voice: Voice | None = None,
    resolver: Resolver | None = None,
) -> Grant:
    """Return what one run of a skill may touch, with every cut explained.

    `digest` is the skill's, as `sha256:…`. `arguments` are what a person typed: those that name an
    existing path inside the read roots are granted for reading. `named` are files that a call names by
    parameters that declare an access: each is granted or the whole call is refused, by UsageError. `voice` is
    `listen` for the same skill, digest and layers, from a caller who decides often; `resolver` a picture of the
    disk that several decisions share. SkillError when the skill or its request
    has an error: nothing is granted then and nothing runs. ConfigError when a layer cannot be placed.
    """
    voice = voice or listen(skill, layers, digest)
    scene = _Scene.set(voice, layers, place, resolver or Resolver())
    cut, wanted = _cut(voice, scene, flags.asked())
    _typed(cut, arguments, scene)
    opened = _declared(cut, named, scene)
    ground = Ground(_touched(cut, scene.resolver), _limits(scene), _named(voice, scene, layers))
    deny = tuple(
        spelled for bounds in scene.layers if bounds.ceiling.deny for spelled in bounds.ceiling.deny.value
    )
    denied = survey(ground, deny, scene.resolver, place)
    subtract(cut, denied, scene.resolver)
    others = [bounds.ceiling for bounds in scene.layers[1:]]
    verdict = judge(
        voice.request, layers, others, skill=place.skill, digest=digest, place=place, resolver=scene.resolver
    )

    capabilities = cut.capabilities
    grant = Grant(
        capabilities=capabilities,
        granted=(*cut.granted, *verdict.granted),
        narrowed=tuple(cut.narrowed),
        refused=(*cut.refused, *verdict.refused),
        denied=_below(denied, capabilities),
        missing=tuple(_missing(cut, capabilities.fs_write, scene.resolver)),
        require=scene.require if verdict.reason is None else Requirement.NONE,
        unconfined=verdict.reason,
        cwd=voice.request.cwd,
        approval=voice.request.approval,
        warnings=(*voice.warnings, *scene.warnings, *verdict.warnings),
        links=_links(cut, wanted),
        pins=tuple(one.pin for one in opened if one.pin is not None),
    )
    check_kept(opened, grant)
    return grant


@dataclass(frozen=True, slots=True)
class Outline:
    """The most that a run of a skill can be granted; `confined` says whether it is limited to that at all."""

    capabilities: Capabilities
    confined: bool


def outline(
    skill: Skill,
    layers: Layers,
    place: Place,
    *,
    digest: str,
    voice: Voice | None = None,
    resolver: Resolver | None = None,
) -> Outline:
    """Return the request cut by every layer, before any argument: a grant holds this or less.

    Much cheaper than `decide`, since nothing is walked for what is denied; the place needs no scratch folder that
    exists (NO_SCRATCH). Raises as `decide` does.
    """
    voice = voice or listen(skill, layers, digest)
    scene = _Scene.set(voice, layers, place, resolver or Resolver())
    cut, _ = _cut(voice, scene, ())
    verdict = judge(
        voice.request,
        layers,
        [bounds.ceiling for bounds in scene.layers[1:]],
        skill=skill.path,
        digest=digest,
        place=place,
        resolver=scene.resolver,
    )
    confined = verdict.reason is None and scene.require is not Requirement.NONE
    return Outline(cut.capabilities, confined)


def _cut(voice: Voice, scene: _Scene, spoken: tuple[Asked, ...]) -> tuple[Cut, tuple[Wanted, ...]]:
    """Cut the request by every layer, and what the operator's flags add only by the layers that no flag passes."""
    timed = any(asked.capability is Capability.TIMEOUT for asked in spoken)
    asked = [one for one in voice.request.asked if not (timed and one.capability is Capability.TIMEOUT)]
    wanted = scene.wanted(asked, scene.cwd)
    cut = intersect(wanted, scene.layers, top=_NO_LIMIT)
    if not spoken:
        return cut, wanted
    raised = scene.wanted(spoken, scene.place.workspace)
    more = intersect(raised, scene.hard, top=_NO_LIMIT)
    cut.read |= more.read
    cut.write |= more.write
    cut.network |= more.network
    cut.env |= more.env
    if timed:
        cut.timeout = more.timeout
        cut.granted = [item for item in cut.granted if item.capability is not Capability.TIMEOUT]
    cut.granted += [item for item in more.granted if timed or item.capability is not Capability.TIMEOUT]
    cut.narrowed += more.narrowed
    cut.refused += more.refused
    return cut, (*wanted, *raised)


def _typed(cut: Cut, arguments: Sequence[str], scene: _Scene) -> None:
    if not arguments:
        return
    capabilities = cut.capabilities
    roots, _ = together(scene.layers, top=_NO_LIMIT)
    for text, resolved in argument_paths(arguments, scene.resolver, scene.cwd):
        path = resolved.path
        root = next((root for root in roots if inside(path, root.path)), None)
        if root is not None and path not in cut.read and not capabilities.allows_read(path):
            cut.read.add(path)
            cut.granted.append(Item(Capability.FS_READ, str(path), ARGUMENT, asked=text, limit_at=root.at))


def _declared(cut: Cut, named: Sequence[NamedPath], scene: _Scene) -> tuple[Opened, ...]:
    """Grant the files that a call names, each beneath a root of the ceiling, whatever else was asked for."""
    if not named:
        return ()
    read, write = together(scene.layers, top=_NO_LIMIT)
    found: list[Opened] = []
    for one in named:
        opened = open_named(one, write if one.write else read, scene.cwd)
        if one.write:
            cut.write.setdefault(opened.path, False)
        else:
            cut.read.add(opened.path)
        capability = Capability.FS_WRITE if one.write else Capability.FS_READ
        cut.granted.append(
            Item(capability, str(opened.path), opened.at, asked=one.text, limit_at=opened.root.at)
        )
        found.append(opened)
    return tuple(found)


def _touched(cut: Cut, resolver: Resolver) -> tuple[tuple[Path, bool], ...]:
    # In normal form: a path that a wider one covers is no root of its own, or asking for both would give less than for one.
    rights = cut.capabilities
    paths = sorted(
        rights.fs_read | rights.fs_write
    )  # sets have no order, and what a backend is told must have one
    seen = ((path, resolver.follow(str(path))) for path in paths)
    return tuple((path, one.is_dir or not one.exists) for path, one in seen)


def _limits(scene: _Scene) -> tuple[Path, ...]:
    """Return the roots that the operator named; a project's file can't turn a secret into a root of its own."""
    own = (scene.layers[0], *scene.hard)
    roots = [root.path for bounds in own for root in (*(bounds.read or ()), *(bounds.write or ()))]
    return tuple(dict.fromkeys(roots))


def _named(voice: Voice, scene: _Scene, layers: Layers) -> frozenset[Path]:
    """Return the exact paths that the operator's own file names, as nodes and as what they lead to."""
    found: list[Path] = []
    spelled: list[Spelled] = []
    if layers.base_role in OPERATOR_ROLES:
        for bound in (layers.base.fs_read, layers.base.fs_write):
            spelled.extend(bound.value if bound else ())
    for entry in voice.entries:
        if entry.request is not None and entry.role in OPERATOR_ROLES:
            paths = (a for a in entry.request.asked if a.capability in _PATHS)
            spelled.extend(Spelled(str(a.value), a.at, a.base) for a in paths)
    for one in spelled:
        text = expand(one, scene.place, scene.cwd)
        resolved = scene.resolver.follow(text)
        if resolved.escape(scene.place.workspace, scene.place.skill) is None:
            found += [scene.resolver.leaf(text)[0], resolved.path]
    return frozenset(found)


def _below(denied: Mapping[str, Denied], capabilities: Capabilities) -> tuple[Denied, ...]:
    tops = tuple(f"{root}/".replace("//", "/") for root in capabilities.fs_read)
    return tuple(one for text, one in denied.items() if text.startswith(tops))


def _missing(cut: Cut, roots: frozenset[Path], resolver: Resolver) -> Iterator[tuple[Path, bool]]:
    for path in sorted(roots):
        if not resolver.follow(str(path)).exists:
            yield path, cut.write[path]


def _links(cut: Cut, wanted: Sequence[Wanted]) -> tuple[Path, ...]:
    kept = {*cut.read, *cut.write}
    links = (
        link for one in wanted if one.resolved and one.resolved.path in kept for link in one.resolved.links
    )
    return tuple(dict.fromkeys(links))
