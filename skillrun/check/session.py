"""Session: what one command checks, put together: roots, ceiling, project, catalog.

The operator's own configuration is left out on purpose: a check, a lock and a diff say the same on every
machine. What limits is `--ceiling`, else the preset `default`, and the project's own files.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from skillrun.check.base import Base, relabelled, top_of
from skillrun.check.engine import subjects_of
from skillrun.check.project import Project, placed
from skillrun.errors import ConfigError
from skillrun.permissions.layers import Layers, load_layers
from skillrun.roots import PROJECT_ROOTS, look_through

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillrun.check.subject import Subject
    from skillrun.host import Host
    from skillrun.skills.catalog import Catalog


@dataclass(frozen=True, slots=True)
class Session:
    """What the caller named. `folder` is the project, physical; `roots` are absolute, empty for the usual ones."""

    folder: Path
    roots: tuple[Path, ...]
    ceiling: Path | str | None
    host: Host

    def looked_through(self) -> tuple[Path, ...]:
        """Return the roots: those named, else the usual folders of the project that are there. Never those at home."""
        return self.roots or tuple(root for name in PROJECT_ROOTS if (root := self.folder / name).is_dir())

    def labels(self, project: Project) -> tuple[str, ...]:
        """Return the roots relative to the project."""
        return tuple(project.label(_physical(root)) for root in self.looked_through())

    def catalog(self, roots: Sequence[Path] | None = None) -> Catalog:
        """Look through the roots."""
        found = self.looked_through() if roots is None else roots
        return look_through([(root, False) for root in found], self.host)

    def layers(self) -> Layers:
        """Read what limits the project as it lies here. ConfigError names what is wrong."""
        return self._layers(self.folder, self.ceiling, self.looked_through())

    def project(self) -> Project:
        """Give the project under the ceiling that lies here."""
        return placed(self.layers(), self.folder, self.host)

    def base_layers(self, base: Base) -> Layers:
        """Read what limits the project in another version, with the places of that version."""
        ceiling = self.ceiling
        if isinstance(ceiling, Path):
            ceiling = base.counterpart(_physical(ceiling)) or ceiling
        try:
            return self._layers(base.folder, ceiling, self.base_roots(base))
        except ConfigError as wrong:
            raise relabelled(base, wrong.problems) from None

    def guarded(self, base: Base) -> Project:
        """Give the project as it lies here under the ceiling of another version."""
        layers = base.moved(self.base_layers(base))
        return placed(
            replace(layers, repository=top_of(self.folder), named_roots=self._spelled()),
            self.folder,
            self.host,
        )

    def base_project(self, base: Base) -> Project:
        """Give the project of another version under its own ceiling."""
        return placed(self.base_layers(base), base.folder, self.host)

    def base_roots(self, base: Base) -> tuple[Path, ...]:
        """Return the roots of another version that are there."""
        if not self.roots:
            return tuple(root for name in PROJECT_ROOTS if (root := base.folder / name).is_dir())
        found = (base.counterpart(_physical(root)) for root in self.roots)
        return tuple(root for root in found if root is not None and root.is_dir())

    def _layers(self, folder: Path, ceiling: Path | str | None, roots: Sequence[Path]) -> Layers:
        return load_layers(
            ceiling=ceiling,
            workspace=folder,
            config_file=None,
            machine_file=None,
            home=self.host.home,
            named_roots=roots,
        )

    def _spelled(self) -> tuple[Path, ...]:
        return tuple(dict.fromkeys(one for root in self.looked_through() for one in (root, _physical(root))))


def find_subjects(session: Session, project: Project) -> tuple[Catalog, tuple[Subject, ...]]:
    """Look through the roots and give every skill as a subject."""
    catalog = session.catalog()
    return catalog, subjects_of(catalog, project)


def _physical(path: Path) -> Path:
    """Return a path with its folder physical and its own name as it is, which may be missing."""
    return path.resolve() if path.exists() else path.parent.resolve() / path.name
