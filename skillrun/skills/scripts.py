"""The scripts of a skill: what lies below `scripts/` and can be run, and how each asks to be started."""

from __future__ import annotations

import difflib
import functools
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skillrun import resources
from skillrun.errors import SkillError, UsageError
from skillrun.problem import At, Problem, error, warning
from skillrun.skills.disk import read_start
from skillrun.skills.model import Command, Script, Starter
from skillrun.skills.script_walk import ScriptWalk
from skillrun.skills.shebang import LINE_LIMIT, LineError, parse_shebang

if TYPE_CHECKING:
    from skillrun.skills.model import Skill

_SOURCE_LIMIT: Final = 1 << 18
"""Bytes of a Python file read to tell a library from a program."""

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
    r"^(?![ \t\r\n#@\"')\]}]|(?:async )?def |class |import |from |[A-Za-z_][\w., ]*(?:: [^=\n]+)?=[^=]"
    r"|try:|except\b|else:|finally:|if (?:typing\.)?TYPE_CHECKING|if sys\.|__all__)\S",
    re.MULTILINE,
)
_TRIPLE = re.compile(r"""\"{3}|'{3}""")


def find_scripts(
    skill_folder: Path, listing: list[os.DirEntry[str]] | None = None
) -> tuple[tuple[Script, ...], tuple[Problem, ...]]:
    """List what can be run below `skill_folder`/scripts, in byte order of the names.

    `skill_folder` is physical; `listing` is what lies in its `scripts`, for a caller who has looked.
    The problems are about what is not listed: links out of the skill, folders that can't be read. A
    script's own problems are in it.
    """
    walk = ScriptWalk(skill_folder, listing)
    scripts = [script for name, path in walk.files() if (script := _script(name, path)) is not None]
    if len(scripts) > 1:
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
    if head.startswith(b"#!"):
        problem: Problem | None = None
        command: Command | None = None
        try:
            command, windows = parse_shebang(head)
        except LineError as wrong:
            at = At(path or Path(name), 1, 1)
            problem = error("script-interpreter-line", f"{wrong}", at=at, help="write `#!/usr/bin/env NAME`")
        else:
            if windows:
                message = (
                    f"the interpreter line of `{name}` has a Windows line end, so a plain start of it fails"
                )
                at = At(path or Path(name), 1, 1)
                help_ = "save the file with LF line ends; skillrun reads past it"
                problem = warning("script-windows-line-end", message, at=at, help=help_)
        return command, () if problem is None else (problem,)
    if head.startswith(_NATIVE):
        return Command(Starter.NATIVE, ""), ()
    run = _extensions().get(_ending(name))
    if run is not None:
        return Command(Starter.EXTENSION, run[0], run[1:]), ()
    return None, ()


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
    where = Path(path)
    command, problems = read_command(head, name, path=where)
    if command is None:
        if not problems:
            if not status.st_mode & 0o111 or _ending(name) in _DATA:
                return None
            problems = (_no_line(where, empty=not head),)
        return Script(name, where, None, tool=False, problems=problems)
    tool = not _is_support(name) and not (command.starter is Starter.EXTENSION and _is_library(path, name))
    return Script(name, where, command, tool=tool, problems=problems)


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
    return "__main__" not in source and _DOES_SOMETHING.search(_without_strings(source)) is None


def _without_strings(source: str) -> str:
    """Leave triple-quoted strings out, whose lines stand at the margin without being code; one pass, no parser."""
    kept: list[str] = []
    start, opened = 0, ""
    for quote in _TRIPLE.finditer(source):
        if not opened:
            kept.append(source[start : quote.start()])
            opened = quote[0]
        elif quote[0] == opened:
            kept.append('""')
            start, opened = quote.end(), ""
    return "".join(kept) if opened else "".join((*kept, source[start:]))


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
