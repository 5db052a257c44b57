"""Limits: a ceiling as what a profile is held against."""

from __future__ import annotations

from pathlib import Path

from skillrun.check.profile.finding import Limits
from skillrun.cli.setting import Setting, current
from skillrun.host import current_host
from skillrun.permissions.bounds import Root, place_ceiling, together
from skillrun.permissions.layers import load_layers
from skillrun.permissions.place import Place
from skillrun.permissions.resolve import Resolver
from skillrun.problem import At


def limits_of(ceiling: str, workspace: str | None) -> Limits:
    """Resolve a ceiling for a workspace, project files and floors included. Raises ConfigError."""
    setting = Setting(ceiling=ceiling, workspace=workspace)
    host, folder = current_host(), setting.folder().resolve()
    layers = load_layers(
        ceiling=setting.named_ceiling(),
        workspace=folder,
        config_file=host.config_file,
        machine_file=host.machine_file,
        home=host.home,
    )
    place = Place(workspace=folder, skill=folder, scratch=current(), home=host.home, environ=host.environ)
    resolver = Resolver()
    bounds = [
        place_ceiling(layer, resolver, place)[0] for layer in (layers.base, *layers.projects, *layers.hard)
    ]
    read, write = together(bounds, top=Root(Path("/"), At(preset="everything")))
    networks = [one.network for one in bounds if one.network is not None]
    return Limits(
        read=tuple(str(root.path) for root in read),
        write=tuple(str(root.path) for root in write),
        network=bool(networks) and all(network.everything for network in networks),
    )
