"""What git runs or obeys in a granted folder because some configuration names it.

`core.hooksPath` may name any folder, `include.path` any file, and a filter, a monitor or an alias any
program, by a path in the work tree. Whoever may change one of these runs commands at the next `git
status` (law 8), so they are protected like `.git/hooks`.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skillrun import resources
from skillrun.errors import ConfigError
from skillrun.permissions.capabilities import below
from skillrun.permissions.closed import ClosedError, is_ours, may_be
from skillrun.problem import error
from skillrun.sandbox.complete import control_names
from skillrun.sandbox.git_command import LONGEST, paths_in
from skillrun.sandbox.git_config import read, settings
from skillrun.sandbox.search import BARE
from skillrun.sandbox.walk import is_folder, link_nodes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from skillrun.sandbox.git_config import Setting
    from skillrun.sandbox.search import Search

_MOST_DEPTH: Final = 10  # of includes, as in git (MAX_INCLUDE_DEPTH in its config.c)
# Of everything a workspace makes us do: 6,000 ordinary repositories, more than a search goes through, need less.
_MOST_TEXT: Final = 4 << 20  # bytes of configuration
_MOST_LOOKS: Final = 1_000_000  # parts of paths looked at
_GITDIR: Final = "gitdir: "


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What of the user's surroundings git looks at: the home, and the variables that name settings."""

    home: Path | None
    environ: Mapping[str, str]

    def files(self) -> tuple[Path, ...]:
        """Return the files of the user's and the machine's own settings (FILES in git-config(1))."""
        environ, home = self.environ, self.home
        own = [Path(environ.get("GIT_CONFIG_SYSTEM") or "/etc/gitconfig")]
        xdg = environ.get("XDG_CONFIG_HOME", "")
        if xdg.startswith("/"):
            own.append(Path(xdg, "git/config"))
        if home is not None:
            own += [home / ".gitconfig", home / ".config/git/config"]
        named = environ.get("GIT_CONFIG_GLOBAL", "")
        return (*own, *([Path(named)] if named.startswith("/") else []))


@dataclass(frozen=True, slots=True)
class Obeyed:
    """What was found, each path with the reason; `complete` says whether everything could be looked at."""

    paths: tuple[tuple[Path, str], ...] = ()
    complete: bool = True


@dataclass(frozen=True, slots=True)
class _Repository:
    """A repository: where git starts what it runs, its own folder, and the files it takes its settings from.

    `place` is None for what git does outside of any repository that is known here. `wide` are the folders
    that can't be protected as a whole, because nothing would be left to write.
    """

    top: Path
    wide: tuple[Path, ...]
    place: Path | None = None
    files: tuple[Path, ...] = ()


def obeyed(writes: Collection[Path], found: Search, surroundings: Surroundings) -> Obeyed:
    """Name what lies at, in or above the write roots and is named by a setting of git's, with the reason.

    Looked at are the repositories found in the granted folders and those above a write root, with the
    user's and the machine's own settings: `core.hooksPath = .hooks` there counts in every repository. Raises ConfigError
    for settings and folders that a script may have closed, to open them again once what they name was changed.
    """
    if not writes:
        return Obeyed()
    if found.shut:
        raise ClosedError(
            found.shut[0], ours=True, lost="what in it names or leads to may be what the script can write"
        )
    reading = _Reading(surroundings)
    named: dict[Path, str] = {}
    elsewhere = _Repository(Path("/"), tuple(writes))
    for repository in (elsewhere, *_repositories(writes, found)):
        for path, reason in (*_control(repository), *reading.named(repository)):
            if any(_matters(path, root) for root in writes):
                named.setdefault(path, reason)
    if reading.shut is not None:
        raise _closed(reading.shut)
    return Obeyed(tuple(named.items()), reading.complete)


def obeyed_in(tops: Collection[Path], surroundings: Surroundings) -> tuple[tuple[Path, str], ...]:
    """Name what the user's and the machine's own settings mean in repositories, whose own are not read."""
    reading = _Reading(surroundings)
    repositories = [_Repository(top, (top,), top) for top in tops]
    try:
        return tuple(line for one in repositories for line in reading.named(one) if below(line[0], one.top))
    except ClosedError:  # by another run: the folder is told of
        return ()


def _matters(path: Path, root: Path) -> bool:
    """Tell whether a path and a write root have anything in common."""
    return path == root or below(path, root) or below(root, path)


def _repositories(writes: Collection[Path], found: Search) -> Iterator[_Repository]:
    """Give the repositories whose settings matter."""
    above = {folder for root in writes for folder in (root, *root.parents)}
    for git in sorted({*found.repositories, *found.git_files, *(folder / ".git" for folder in above)}):
        place = git if is_folder(str(git)) else _leads_to(git)
        if place is not None:
            yield _repository(git.parent, place)
    for folder in sorted({*found.bare, *(folder for folder in above if _is_bare(folder))}):
        yield _repository(folder, folder)


def _is_bare(folder: Path) -> bool:
    """Tell whether a folder above a write root is shaped like a repository."""
    return any(all(may_be(f"{folder}/{name}") for name in shape) for shape in BARE)


def _closed(file: Path) -> ConfigError:
    """Say that settings can't be told."""
    message = f"`{file}` can't be read, and git takes its settings from it once it can be"
    return ConfigError(
        error("path-closed", message, help="`chmod u+r` it, and `chmod u+x` the folders that it is in")
    )


def _repository(top: Path, place: Path) -> _Repository:
    """Describe a repository by its folder; one that shares settings says with which."""
    common = place / _line(place / "commondir")
    return _Repository(
        top, (top,), place, (common / "config", place / "config.worktree", common / "config.worktree")
    )


def _leads_to(git: Path) -> Path | None:
    """Return the folder that a `.git` file names, as in linked work trees and submodules."""
    line = _line(git)
    return git.parent / line.removeprefix(_GITDIR) if line.startswith(_GITDIR) else None


def _line(path: Path) -> str:
    """Return the first line of a file that holds a path, empty where there is none that could be one."""
    try:
        text = read(path, follow=True)
    except PermissionError:
        if is_ours(str(path)):
            raise _closed(path) from None
        text = None
    line = (text or "").split("\n", 1)[0].rstrip("\r")
    return line if len(line) <= LONGEST and "\0" not in line else ""


def _control(repository: _Repository) -> Iterator[tuple[Path, str]]:
    """Give what is protected in `.git`, in the folders that take its place."""
    if repository.place is None:
        return
    for folder in dict.fromkeys((repository.place, *(file.parent for file in repository.files))):
        if folder.name != ".git":
            for name in control_names():
                yield from _both(folder / name, "as in .git")


class _Reading:
    """Reads settings, each file once, within the bounds for all of a run."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._home = surroundings.home
        self._own = surroundings.files()
        self._text_left = _MOST_TEXT
        self._looks_left = _MOST_LOOKS
        self._read: dict[Path, tuple[Setting, ...]] = {}
        self._told: set[Path] = set()
        self.complete = True
        self.shut: Path | None = None  # settings that can't be read, for want of a right that we could give

    def named(self, repository: _Repository) -> Iterator[tuple[Path, str]]:
        """Give what the settings of a repository name, and the files that they come from."""
        lines: dict[Setting, Path] = {}  # a setting that is there twice means the same twice
        for file, reason in self._files(repository):
            if file not in self._told and file not in repository.files:
                self._told.add(file)
                yield from _both(file, reason)
            for setting in self._settings(file):
                lines.setdefault(setting, file)
        tops = [repository.top]
        if repository.place is not None:
            own = (one.value for one in lines if one.name == "core.worktree")
            tops += [repository.place / value for value in own if _could_be_path(value)]
        for setting, file in lines.items():
            for path in self._meant(setting, tops, repository):
                yield from _both(path, f"`{setting.name}` in `{file}` names it")

    def _files(self, repository: _Repository) -> Iterator[tuple[Path, str]]:
        """Give the files that settings come from, those they include too."""
        pending = [(file, 0, "git takes its settings from it") for file in (*self._own, *repository.files)]
        seen: set[Path] = set()
        while pending:
            file, depth, reason = pending.pop()
            if file in seen or not self._may(str(file)):
                continue
            seen.add(file)
            yield file, reason
            for setting in self._settings(file):
                if _table().get(setting.name) != "include" or depth == _MOST_DEPTH:
                    continue
                if _could_be_path(setting.value):
                    included = _path(setting.value, file.parent, self._home)
                    pending.append((included, depth + 1, f"the settings of git in `{file}` include it"))

    def _settings(self, file: Path) -> tuple[Setting, ...]:
        """Read a file; what is too much is left out, and the reading is then not complete."""
        if file not in self._read:
            text = self._text(file) if self._text_left > 0 else None
            if text is None and os.path.isfile(file):  # noqa: PTH113 - as above
                self.complete = False
            self._text_left -= len(text or "")
            uses = _table()
            self._read[file] = tuple(
                one for one in settings(text or "") if one.name in uses or one.section in uses
            )
        return self._read[file]

    def _text(self, file: Path) -> str | None:
        """Read a file as `read` does. One that our user can't read is none to git, until a script opens it again."""
        try:
            return read(file, follow=True)
        except PermissionError:
            self.shut = file if is_ours(str(file)) else self.shut
            return ""

    def _may(self, path: str) -> bool:
        """Count a look at a path, part by part; False when there were too many."""
        self._looks_left -= 1 + path.count("/")
        self.complete = self.complete and self._looks_left >= 0
        return self._looks_left >= 0

    def _meant(self, setting: Setting, tops: list[Path], repository: _Repository) -> Iterator[Path]:
        """Give what a setting names. An alias is a command only after `!`; the name of a `url` is its value."""
        use = _table().get(setting.name, _table().get(setting.section))
        if use == "path" and _could_be_path(setting.value):
            for path in [_path(setting.value, top, self._home) for top in tops]:
                wide = any(path == folder or below(folder, path) for folder in repository.wide)
                if self._may(str(path)):
                    yield from _in_wide(setting, path) if wide else (path,)
        elif use == "command" and (setting.section != "alias" or setting.value.startswith("!")):
            line = f"{setting.subsection} {setting.value}" if setting.section == "url" else setting.value
            for found in paths_in(line, tops, repository.place, self._home, may=self._may):
                yield Path(found)


@functools.cache
def _table() -> Mapping[str, str]:
    """Return what a setting's value is, by `section.key` or by section: `include`, `path`, `command`, `other`."""
    protected = resources.table("protected")
    table = dict.fromkeys(protected["git_command_sections"], "command")
    table.update((line["key"], line.get("value", "command")) for line in protected["git_commands"])
    return table


def _could_be_path(value: str) -> bool:
    """Tell whether a value can be a path; an empty one turns a setting off."""
    return 0 < len(value) <= LONGEST


def _path(value: str, base: Path, home: Path | None) -> Path:
    """Return the path that a value means; `~user` is somebody else's and stays as it is."""
    value = value.removeprefix(":(optional)")
    if value.startswith("~/") and home is not None:
        value = f"{home}{value[1:]}"
    return Path(os.path.normpath(base / value))


def _in_wide(setting: Setting, path: Path) -> Iterator[Path]:
    """Give what git takes by its name from a folder that is all of a work tree or above it."""
    names = {"core.hookspath": resources.table("protected")["git_hooks"], "init.templatedir": control_names()}
    yield from (path / name for name in names.get(setting.name, ()))


def _both(path: Path, reason: str) -> Iterator[tuple[Path, str]]:
    """Give a path as it is spelled and, where links lead elsewhere, as it is."""
    spelled = Path(os.path.normpath(path))
    yield spelled, reason
    _, real = link_nodes(path)
    if real is not None and real != spelled:
        yield real, reason
