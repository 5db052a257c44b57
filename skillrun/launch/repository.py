"""A git repository that a run made: what in it would run commands once somebody uses it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from skillrun import resources
from skillrun.sandbox.complete import control_names
from skillrun.sandbox.git_config import read, settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MOST_HOOKS: Final = 20  # that are named
_JUDGED: Final = frozenset({"hooks", "config"})  # by what is in them
_PLAIN: Final = frozenset(
    {"modules", "worktrees", "branches"}
)  # repositories of their own; a folder git itself makes


def commands(repository: Path) -> Iterator[str]:
    """Name the active hooks and the settings of a `.git` folder that run commands.

    Read by descriptor without following links, regular files only, within a cap (law 11). git itself
    is not asked: it would read the same config.
    """
    for name in _hooks(repository):
        yield name
    for name in control_names():
        if name not in _JUDGED | _PLAIN and os.path.lexists(repository / name):
            yield f"`{name}`, which git obeys like its config"
    try:
        text = read(repository / "config", follow=False)
    except PermissionError:
        text = None
    if text is None:
        yield "a config that can't be judged"
        return
    table = resources.table("protected")
    keys = {line["key"]: line["why"] for line in table["git_commands"]}
    sections = set(table["git_command_sections"])
    for setting in settings(text):
        if setting.name in keys:
            yield f"`{setting.name}` in its config ({keys[setting.name]})"
        elif setting.section in sections:
            yield f"`{setting.name}` in its config"


def _hooks(repository: Path) -> Iterator[str]:
    """List the hooks that are not samples; a folder that is a link or can't be listed is one."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        folder = os.open(repository / "hooks", flags)
    except FileNotFoundError:
        return
    except OSError:
        yield "hooks, a folder that can't be judged"
        return
    try:
        names = sorted(name for name in os.listdir(folder) if not name.endswith(".sample"))  # noqa: PTH208
    finally:
        os.close(folder)
    yield from (f"the hook `{name}`" for name in names[:_MOST_HOOKS])
