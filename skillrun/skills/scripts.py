"""The scripts of a skill: what lies below `scripts/` and can be run, and how each asks to be started."""

from __future__ import annotations

import difflib
import functools
import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skillrun import resources
from skillrun.errors import SkillError, UsageError
from skillrun.problem import At, Problem, error, warning
from skillrun.skills.disk import is_inside, read_start
from skillrun.skills.model import Command, Script, Starter
from skillrun.skills.shebang import LINE_LIMIT, LineError, parse_shebang

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.skills.model import Skill

DEPTH: Final = 3
"""Levels below `scripts/`, the file's own included (DESIGN 6)."""
ENTRY_LIMIT: Final = 5_000
"""Names looked at below one `scripts/`; the largest real one has 484 files."""
_SOURCE_LIMIT: Final = 1 << 18
"""Bytes of a Python file read to tell a library from a program."""

_BACKUP = re.compile(r"~$|^#.*#$|\.(?:bak|orig|rej|swp|swo|old|tmp|pyc|pyo)$", re.IGNORECASE)
_SKIPPED_FOLDERS: Final = frozenset(
    {"__pycache__", "node_modules", "venv"}
)  # dot folders go with the dot files
_SUPPORT = re.compile(
    r"^test_|^(?:conftest|__init__|setup)\.|_test\.[a-z]+$|\.(?:test|spec)\.[a-z]+$|\.d\.[cm]?ts$"
)
_TEST_FOLDERS: Final = frozenset({"test", "tests", "__tests__"})
_NATIVE: Final = (
    b"\x7fELF",
    b"\xfe\xed\xfa\xce", b"\xfe\xed\xfa\xcf", b"\xce\xfa\xed\xfe", b"\xcf\xfa\xed\xfe",  # Mach-O, both orders
    b"\xca\xfe\xba\xbe",  # universal Mach-O
)  # fmt: skip
# Files that archives and shared folders mark executable though nobody means to run them.
_DATA: Final = frozenset((
    ".md", ".txt", ".json", ".jsonl", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".xml", ".xsd", ".csv", ".tsv", ".html",
    ".css", ".svg", ".png", ".jpg", ".jpeg", ".gif", ".pdf", ".docx", ".xlsx", ".pptx", ".zip", ".gz", ".tar", ".tgz",
    ".lock", ".sql", ".j2", ".tmpl", ".template", ".h", ".c", ".java", ".class", ".jar", ".so", ".dylib",
))  # fmt: skip
# A line at the left margin that does something when the file is run; all else only defines.
_DOES_SOMETHING = re.compile(
    r"^(?![ \t\r\n#@\"')\]}]|(?:async )?def |class |import |from |[A-Za-z_][\w., ]*(?:: [^=]+)?=[^=]"
    r"|try:|except\b|else:|finally:|if (?:typing\.)?TYPE_CHECKING|if sys\.|__all__)\S",
    re.MULTILINE,
)
# Triple-quoted strings, whose lines stand at the margin without being code.
_TRIPLE = re.compile(r"""\"{3}(?:[^"\\]|\\.|"(?!""))*\"{3}|'{3}(?:[^'\\]|\\.|'(?!''))*'{3}""", re.DOTALL)


def find_scripts(skill_folder: Path) -> tuple[tuple[Script, ...], tuple[Problem, ...]]:
    """List what can be run below `skill_folder`/scripts, in byte order of the names.

    `skill_folder` is physical. The problems are about what is not listed: links out of the skill,
    folders that can't be read. A script's own problems are in it.
    """
    walk = _Walk(skill_folder)
    scripts = [script for name, path in walk.files() if (script := _script(name, path)) is not None]
    scripts.sort(key=lambda script: os.fsencode(script.name))
    return tuple(scripts), tuple(walk.problems)


def choose_script(skill: Skill, name: str | None) -> Script:
    """Return the script of that name, or the only one; a name is looked up in the table, never joined to a path.

    Raises UsageError for a name that is not there (with the nearest) and for no name where several
    would do, SkillError for a script that can't be started.
    """
    table = {script.name: script for script in skill.scripts}
    label = skill.key or str(skill.found)
    if name is None:
        usable = [script for script in skill.scripts if script.tool] or list(skill.scripts)
        if len(usable) != 1:
            raise UsageError(_which_one(label, [script.name for script in usable]))
        script = usable[0]
    else:
        found = table.get(name) or table.get(name.removeprefix("./").removeprefix("scripts/"))
        if found is None:
            raise UsageError(_no_such_script(skill, label, name, tuple(table)))
        script = found
    if script.command is None:
        raise SkillError(*(script.problems or (_no_line(script.path, empty=False),)))
    return script


def read_command(
    head: bytes, name: str, *, path: Path | None = None
) -> tuple[Command | None, tuple[Problem, ...]]:
    """Say how a file asks to be started, from its first bytes and its name.

    The command is None where nothing says so (no problem) or where its interpreter line can't be
    followed (a problem that says why). Interpreter line first, then executable format, then the name.
    """
    at = At(path or Path(name), 1, 1)
    if head.startswith(b"#!"):
        try:
            command, windows = parse_shebang(head)
        except LineError as wrong:
            return None, (
                error("script-interpreter-line", f"{wrong}", at=at, help="write `#!/usr/bin/env NAME`"),
            )
        if not windows:
            return command, ()
        message = f"the interpreter line of `{name}` has a Windows line end; skillrun reads past it, a plain start fails"
        return command, (
            warning("script-windows-line-end", message, at=at, help="save the file with LF line ends"),
        )
    if head.startswith(_NATIVE):
        return Command(Starter.NATIVE, ""), ()
    run = _extensions().get(_ending(name))
    if run is not None:
        return Command(Starter.EXTENSION, run[0], run[1:]), ()
    return None, ()


class _Walk:
    """A walk below `scripts/` that stays in the skill, whatever links lie there."""

    def __init__(self, skill_folder: Path) -> None:
        self.skill = os.fspath(skill_folder)
        self.problems: list[Problem] = []
        self.seen: set[tuple[int, int]] = set()
        self.left = ENTRY_LIMIT

    def tell(self, rule: str, message: str, path: str, *, help_: str | None = None) -> None:
        self.problems.append(warning(rule, message, at=At(Path(path)), help=help_))

    def files(self) -> Iterator[tuple[str, str]]:
        """Yield name and physical path of each regular file."""
        top = f"{self.skill}/scripts"
        try:
            mode = os.lstat(top).st_mode
        except OSError:
            return
        inside = self.inside(top) if stat.S_ISLNK(mode) else top
        stack = [] if inside is None else [("", inside)]
        while stack:
            prefix, folder = stack.pop()
            for entry in self.listing(folder):
                path = self.inside(entry.path) if entry.is_symlink() else entry.path
                if path is None:
                    continue
                mode = os.lstat(path).st_mode if entry.is_symlink() else 0
                if entry.is_file(follow_symlinks=False) or stat.S_ISREG(mode):
                    yield prefix + entry.name, path
                elif prefix.count("/") < DEPTH - 1 and entry.name not in _SKIPPED_FOLDERS:
                    stack.append((f"{prefix}{entry.name}/", path))  # what is no folder lists nothing

    def listing(self, folder: str) -> list[os.DirEntry[str]]:
        """List a folder once, without dot files and backups; a limit or an error becomes a problem."""
        kept: list[os.DirEntry[str]] = []
        try:
            status = os.lstat(folder)
            if (
                not stat.S_ISDIR(status.st_mode)
                or (status.st_dev, status.st_ino) in self.seen
                or self.left < 0
            ):
                return kept
            self.seen.add((status.st_dev, status.st_ino))
            with os.scandir(folder) as entries:
                for entry in entries:
                    self.left -= 1
                    if self.left < 0:
                        message = (
                            f"there are more than {ENTRY_LIMIT} files below `scripts`; not all are listed"
                        )
                        self.tell("scripts-too-many", message, folder)
                        break
                    if not entry.name.startswith(".") and not _BACKUP.search(entry.name):
                        kept.append(entry)
        except OSError as wrong:
            self.tell("scripts-unreadable", f"the folder can't be read: {wrong.strerror}", folder)
        return kept

    def inside(self, link: str) -> str | None:
        """Follow a link to its end; None, with a problem, where that is outside the skill or nowhere."""
        try:
            target = os.path.realpath(link, strict=True)
        except OSError:
            self.tell("script-link-dead", "the link leads nowhere", link, help_="remove it")
            return None
        if is_inside(target, self.skill):
            return target
        # The target is not named: it's a path of the operator's machine, and this text goes to whoever asked.
        message = f"`{link[len(self.skill) + 1 :]}` links out of the skill and is not followed"
        self.tell("script-link-out", message, link, help_="put the file into the skill")
        return None


def _script(name: str, path: str) -> Script | None:
    """Make a Script of a file, or None when nothing about it says that it is one."""
    try:
        head, status = read_start(path, LINE_LIMIT)
    except OSError as wrong:
        if _ending(name) not in _extensions():
            return None
        unreadable = error(
            "script-unreadable", f"`{name}` can't be read: {wrong.strerror}", at=At(Path(path))
        )
        return Script(name, Path(path), None, tool=False, problems=(unreadable,))
    command, problems = read_command(head, name, path=Path(path))
    if command is None:
        if not problems:
            if not status.st_mode & 0o111 or _ending(name) in _DATA:
                return None
            problems = (_no_line(Path(path), empty=not head),)
        return Script(name, Path(path), None, tool=False, problems=problems)
    tool = not _is_support(name) and not (command.starter is Starter.EXTENSION and _is_library(path, name))
    return Script(name, Path(path), command, tool=tool, problems=problems)


def _ending(name: str) -> str:
    stem, dot, ending = name.rpartition(".")
    return f".{ending.lower()}" if dot and stem and not stem.endswith("/") else ""


def _is_support(name: str) -> bool:
    *folders, file = name.split("/")
    return _SUPPORT.search(file) is not None or not _TEST_FOLDERS.isdisjoint(folders)


def _is_library(path: str, name: str) -> bool:
    """Whether a Python file without an interpreter line only defines things: running it would do nothing.

    Read as text, never parsed: a wrong guess costs a place in a list and no more.
    """
    if not name.endswith(".py"):
        return False
    try:
        source = read_start(path, _SOURCE_LIMIT)[0].decode("utf-8", "replace")
    except OSError:
        return False
    return "__main__" not in source and _DOES_SOMETHING.search(_TRIPLE.sub('""', source)) is None


@functools.cache
def _extensions() -> dict[str, tuple[str, ...]]:
    shipped = resources.table("runtime/interpreters")["extensions"]
    return {ending: tuple(line["run"]) for ending, line in shipped.items()}


def _no_line(path: Path, *, empty: bool) -> Problem:
    if empty:
        return warning("script-empty", f"`{path.name}` is empty: there is nothing to run", at=At(path))
    message = f"`{path.name}` has no interpreter line, so nothing says what runs it"
    help_ = "begin it with `#!/bin/sh`, or whatever it is written for"
    return warning("script-no-interpreter", message, at=At(path, 1, 1), help=help_)


def _which_one(label: str, names: list[str]) -> Problem:
    if not names:
        return error(
            "script-none", f"the skill `{label}` has no script", help="put one into its `scripts` folder"
        )
    listed = ", ".join(f"`{name}`" for name in names[:10]) + (", …" if len(names) > 10 else "")  # noqa: PLR2004 - a line's worth
    return error(
        "script-which", f"the skill `{label}` has several scripts: {listed}", help="name the one to run"
    )


def _no_such_script(skill: Skill, label: str, name: str, names: tuple[str, ...]) -> Problem:
    """Say why a name is not in the table: it is a path, a link out of the skill, or simply not there."""
    parts = name.split("/")
    if name.startswith("/") or ".." in parts or "\x00" in name:
        message = (
            f"`{name}` is not the name of a script: names are paths below the skill's `scripts`, without `..`"
        )
        return error("script-outside", message, help=_nearest(parts[-1], names))
    wanted = (
        skill.path / "scripts" / name.removeprefix("./").removeprefix("scripts/")
    )  # compared, never opened
    for problem in skill.problems:
        if problem.rule.startswith("script-link") and problem.at is not None and problem.at.path == wanted:
            return error(problem.rule, problem.message, at=problem.at, help=problem.help)
    message = f"the skill `{label}` has no script `{name}`"
    return error("script-unknown", message, help=_nearest(name, names))


def _nearest(name: str, names: tuple[str, ...]) -> str | None:
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if near:
        return f"did you mean `{near[0]}`?"
    return "its scripts are " + ", ".join(f"`{known}`" for known in names[:10]) if names else None
