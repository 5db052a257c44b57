"""Narrowing: a project file may only take away; whatever would give more is an error with its line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from skillrun.permissions.bounds import Bounds, Root, network_of, place_ceiling, smallest, together
from skillrun.permissions.capabilities import Network, inside
from skillrun.permissions.ceiling import weaker_than
from skillrun.permissions.resolve import Resolver
from skillrun.problem import Problem, error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillrun.permissions.ceiling import Ceiling
    from skillrun.permissions.place import Place
    from skillrun.problem import At


def check_narrows(projects: Sequence[Ceiling], base: Ceiling, place: Place) -> tuple[Problem, ...]:
    """Return an error for every value of a project file that is wider than what stands above it."""
    if not projects:
        return ()
    resolver = Resolver()
    above = [place_ceiling(base, resolver, place)[0]]
    problems: list[Problem] = []
    for project in projects:
        bounds = place_ceiling(project, resolver, place)[0]
        problems.extend(_wider(bounds, above))
        above.append(bounds)
    return tuple(problems)


def _wider(own: Bounds, above: Sequence[Bounds]) -> list[Problem]:
    ceiling = own.ceiling
    found: list[Problem] = []
    read, write = together(above, top=Root(Path("/"), ceiling.at))
    for key, roots, limit in (("fs_read", own.read, read), ("fs_write", own.write, write)):
        outside = [root for root in roots or () if not any(inside(root.path, top.path) for top in limit)]
        found.extend(_problem(f"`{key}` reaches `{root.path}`", root.at) for root in outside)
    network = Network(everything=True)
    for layer in above:
        network = network & layer.network if layer.network is not None else network
    lines = ceiling.network.value if ceiling.network else ()
    found.extend(
        _problem("`network` reaches more", at) for reach, at in lines if not network_of((reach,)) <= network
    )
    names = ceiling.env.value if ceiling.env else ()
    known = [layer.env for layer in above if layer.env is not None]
    found.extend(
        _problem(f"`env` passes `{name}`", at) for name, at in names if any(name not in env for env in known)
    )
    if (
        ceiling.timeout
        and ceiling.timeout.value > smallest(a.ceiling.timeout for a in above if a.ceiling.timeout)[0]
    ):
        found.append(_problem("`timeout` is longer", ceiling.timeout.at))
    for name, value, at in ceiling.limits.value if ceiling.limits else ():
        if any(
            name == n and value > v for a in above if a.ceiling.limits for n, v, _ in a.ceiling.limits.value
        ):
            found.append(_problem(f"`limits.{name}` is larger", at))
    if ceiling.enabled is not None and not ceiling.enabled.value:
        found.append(_problem("`enabled: false` switches the sandbox off", ceiling.enabled.at))
    requires = [a.ceiling.require.value for a in above if a.ceiling.require is not None]
    if ceiling.require is not None and any(weaker_than(ceiling.require.value, r) for r in requires):
        found.append(_problem("`require` asks for less", ceiling.require.at))
    return found


def _problem(what: str, at: At) -> Problem:
    message = f"{what} than the ceiling above this project file allows"
    return error(
        "ceiling-wider",
        message,
        at=at,
        help="a project file only narrows; widen your own file, or use a flag",
    )
