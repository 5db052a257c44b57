"""A collection: skills in a folder, checked with the library as `skillrun check` does."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillrun.check.engine import check
from skillrun.check.session import Session, find_subjects
from skillrun.host import Host

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from skillrun.check.engine import Report
    from skillrun.check.finding import Finding
    from skillrun.check.subject import Subject


@dataclass(frozen=True)
class Collection:
    """A project with skills below `skills`, on a machine that has nothing of this one but its PATH."""

    folder: Path
    temporary: Path

    @property
    def host(self) -> Host:
        """The surroundings."""
        return Host(
            home=self.folder.parent, environ={"PATH": os.environ.get("PATH", "")}, temporary=self.temporary
        )

    def skill(
        self, name: str, front: str = "", scripts: Mapping[str, str] | None = None, body: str = ""
    ) -> Path:
        """Make a skill and return its folder."""
        folder = self.folder / "skills" / name
        folder.mkdir(parents=True, exist_ok=True)
        text = f"---\nname: {name.rpartition('/')[2]}\ndescription: For a test.\n{front}---\n{body}"
        (folder / "SKILL.md").write_text(text)
        for script, content in (scripts or {}).items():
            path = folder / "scripts" / script
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        return folder

    def write(self, name: str, text: str) -> Path:
        """Write a file of the project, unreadable to nobody and writable by nobody else."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o644)
        return path

    def session(self, ceiling: str | None = None) -> Session:
        """Describe what is checked: a ceiling is a preset's name, or a file of the project."""
        named = self.folder / ceiling if ceiling is not None and ceiling.endswith(".yaml") else ceiling
        return Session(self.folder, (), named, self.host)

    def subjects(self, ceiling: str | None = None) -> tuple[Subject, ...]:
        """Give the skills as the rules see them."""
        session = self.session(ceiling)
        return find_subjects(session, session.project())[1]

    def report(self, ceiling: str | None = None) -> Report:
        """Check."""
        session = self.session(ceiling)
        project = session.project()
        catalog, subjects = find_subjects(session, project)
        return check(catalog, project, subjects=subjects)

    def found(self, rule: str, ceiling: str | None = None) -> list[Finding]:
        """Check, and give what one rule found."""
        return [finding for finding in self.report(ceiling).findings if finding.rule == rule]
