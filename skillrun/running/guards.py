"""Guards: what a script must never change, and what it must not even see (law 8)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from skillrun.launch.root import shared_root
from skillrun.launch.scratch import RUNS
from skillrun.roots import PROJECT_ROOTS, linked_skills
from skillrun.sandbox.complete import Guarded
from skillrun.sandbox.environment import BIN
from skillrun.sandbox.installation import own_code, search_folders

if TYPE_CHECKING:
    from pathlib import Path

    from skillrun.host import Host
    from skillrun.running.lookup import Lookup
    from skillrun.skills.model import Skill


class Guards:
    """Names the guarded paths of one runner. What does not depend on a run is looked up once."""

    def __init__(
        self,
        *,
        workspace: Path,
        host: Host,
        lookup: Lookup,
        ceiling_file: Path | None,
        records: Path | None = None,
        hidden: tuple[Path, ...] = (),
    ) -> None:
        self._workspace = workspace
        self._host = host
        self._lookup = lookup
        self._ceiling_file = ceiling_file
        self._records = records
        self._hidden = hidden
        self._roots: tuple[Path, ...] | None = None
        self._usual: tuple[Path, Guarded] | None = None

    def around(self, skill: Skill, root: Path) -> Guarded:
        """Name what is guarded in a run of a skill; `root` is the folder of its launcher."""
        usual = self._usual
        if usual is None or usual[0] != root:  # a new launcher has a new folder
            usual = self._usual = (root, self._whatever_the_skill(root))
        if skill.root is None:
            return usual[1]
        readable = (*usual[1].readable, (skill.root.resolve(), "skills and their scripts"))
        return replace(usual[1], readable=readable)

    @property
    def skill_roots(self) -> tuple[Path, ...]:
        """Give the known roots of skills, the usual ones too where they are not there yet; looked up once.

        No `cached_property`: before Python 3.12 it has a lock, which a forked copy could find held.
        """
        if self._roots is None:
            self._roots = self._all_roots()
        return self._roots

    def _all_roots(self) -> tuple[Path, ...]:
        roots = [root for root, _ in self._lookup.roots()] + [
            self._workspace / name for name in PROJECT_ROOTS
        ]
        return tuple(dict.fromkeys(root.resolve() for root in roots))

    @property
    def quarantine(self) -> Path | None:
        """Where things are moved that a run made and a later one would obey; None without a state folder."""
        return self._host.state and self._host.state / "quarantine"

    def _whatever_the_skill(self, root: Path) -> Guarded:
        """Name what is guarded whatever the skill."""
        files = [self._host.config_file, self._host.machine_file, self._ceiling_file]
        readable = [(path, "it limits what scripts may do") for path in files if path is not None]
        # The usual roots too where they are not there: what a run puts there would be a skill later.
        readable += [(found, "skills and their scripts") for found in self.skill_roots]
        readable += [(path, "a skill") for path in linked_skills(self.skill_roots)]
        hidden = [
            (shared_root(self._host.temporary), "scratch of other runs"),
            (root / RUNS, "scratch of other runs"),
        ]
        if self._host.state is not None:
            hidden.append((self._host.state, "skillrun's own records"))
        if self._records is not None:
            hidden.append((self._records, "skillrun's own records"))
        hidden += [(path, "hidden by the caller") for path in self._hidden]
        return Guarded(
            programs=root / BIN,
            readable=(*readable, *own_code()),
            listed=search_folders(self._host.environ.get("PATH", "")),
            hidden=tuple(hidden),
        )
