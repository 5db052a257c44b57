"""Base: another version of a project, from a revision or a folder, to compare with or to take the policy from."""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillrun.check.git import extract, open_repository
from skillrun.check.project import changed
from skillrun.errors import ConfigError, UsageError
from skillrun.permissions.project import repository_root
from skillrun.permissions.spelled import Spelled
from skillrun.problem import At, Problem, error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from skillrun.host import Host


@dataclass(frozen=True, slots=True)
class Base:
    """A version of a project on disk.

    `top` stands for the repository's root `real_top` (the project itself outside a repository), `folder` for the
    project. `name` is how the caller named it.
    """

    name: str
    top: Path
    folder: Path
    real_top: Path

    def counterpart(self, path: Path) -> Path | None:
        """Return where a path of the real tree lies in this version, whether it is there or not; None outside."""
        try:
            return self.top / path.relative_to(self.real_top)
        except ValueError:
            return None

    def real(self, path: Path) -> Path:
        """Return the path in the real tree of one in this version."""
        try:
            return self.real_top / path.relative_to(self.top)
        except ValueError:
            return path

    def moved(self, value: Any) -> Any:
        """Return a value with every place in this version named as in the real tree, for messages and comparison."""

        def at(one: At) -> At:
            if one.path is None:
                return one
            return At(
                self.real(one.path), one.line, one.column, one.end_column, one.preset, one.flag, one.excerpt
            )

        def spelled(one: Spelled) -> Spelled:
            base = self.real(one.base) if isinstance(one.base, Path) else one.base
            return Spelled(one.text, at(one.at), base)

        makers: dict[type, Callable[[Any], Any]] = {At: at, Spelled: spelled}
        return changed(value, makers)


def is_folder(name: str) -> bool:
    """Whether a name means a folder: it says so itself. A bare word is a revision, whatever a change may have put there."""
    return name in {".", ".."} or name.startswith(("/", "./", "../"))


@contextlib.contextmanager
def open_base(
    name: str, folder: Path, current: Path, host: Host, paths: Sequence[str] = ()
) -> Iterator[Base]:
    """Give another version of the project in `folder` (physical): a revision, or a folder from `current`.

    Of a revision only `paths` are written out, relative to the repository's root; all without any. UsageError
    when there is no such revision or folder.
    """
    if is_folder(name):
        there = Path(current, name)
        if not there.is_dir():
            raise UsageError(
                error(
                    "base-missing",
                    f"the folder `{name}` does not exist",
                    help="name a folder, or a revision without a slash",
                )
            )
        yield Base(name, there.resolve(), there.resolve(), folder)
        return
    repository = open_repository(folder, host)
    tree = repository.tree(name)
    with tempfile.TemporaryDirectory(prefix="skillrun-", dir=host.temporary) as made:
        top = Path(made).resolve() / "base"
        top.mkdir(mode=0o700)
        extract(repository, tree, top, paths)
        # An empty `.git` says where this version's root is; git itself never looks at it.
        (top / ".git").mkdir(mode=0o700)
        inner = top / folder.relative_to(repository.top)
        inner.mkdir(parents=True, exist_ok=True)
        yield Base(name, top, inner, repository.top)


def relabelled(base: Base, problems: Sequence[Problem]) -> ConfigError:
    """Make a configuration error whose places are those of the real tree, and that says which version it is."""
    said = [
        Problem(one.rule, one.severity, f"in `{base.name}`: {one.message}", one.help, base.moved(one.at))
        for one in problems
    ]
    return ConfigError(*said)


def top_of(folder: Path) -> Path:
    """Return the root of the repository that a folder lies in, the folder itself outside one."""
    return repository_root(folder) or folder
