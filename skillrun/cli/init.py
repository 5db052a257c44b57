"""`skillrun init`: make a skill that works, or a ceiling file with comments. Never overwrites."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from skillrun.cli.command import HELP, Option, Verb, colour_option, emit
from skillrun.cli.setting import current
from skillrun.errors import UsageError
from skillrun.problem import At, error
from skillrun.report.words import near
from skillrun.skills.keys import RULE_TEXT, as_key

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT: Final = "skills"
"""Where a skill goes when its name alone is given: the first root that `list` and `run` look through."""
CEILING: Final = "skillrun.yaml"

_MANIFEST: Final = """\
---
name: {name}
description: Counts the lines of files. Say here what your skill does and when to use it.
fs_read: ["."]   # the folder it is run in; write `fs_read: []` if it reads nothing
timeout: 10      # seconds
---

# {name}

Run `scripts/count.sh FILE...` to get the number of lines of each file.

What a script asks for stands above: `fs_read`, `fs_write`, `network`, `timeout`. It gets no more than
that, and no more than the person who runs it allows.
"""
_SCRIPT: Final = """\
#!/bin/sh
# Count the lines of each file that is named; without one, those of standard input.
set -eu
if [ $# -eq 0 ]; then
    wc -l
    exit
fi
for file in "$@"; do
    printf '%s: %s\\n' "$file" "$(wc -l < "$file")"
done
"""
_LIMITS: Final = """\
# What skills may have at most. skillrun gives a script what its SKILL.md asks for *and* this file allows.
#
# Here, in a project, the file narrows what your own ceiling says for everybody who works in this folder.
# As `{config}` it is your own ceiling, everywhere.
# `skillrun show SKILL` prints every limit with the line it comes from.
sandbox:
  # Folders and files it may read. `${{workspace}}` is the folder it works in. `[]` is nothing.
  fs_read: ["${{workspace}}"]

  # Folders and files it may write; writing includes reading. In a project no more than your own ceiling has.
  fs_write: []
  # fs_write: ["${{workspace}}/out"]

  # Names below everything that is granted, neither readable nor writable. `.env`, `.ssh` and other names
  # that usually hold secrets are denied anyway.
  deny: [secrets/]

  # No network. `true` is all of it, this machine's own services included; or list hosts.
  network: false
  # network: [api.example.com:443]

  # Seconds that a script may take.
  timeout: 60

  # Variables of yours that it may be given.
  env: []

  limits: {{memory: 2GiB, processes: 256, file_size: 1GiB, output: 1MiB}}

  # The least enforcement a run may have: confined, or full.
  require: confined

# In your own file alone, never in a project:
#
# trusted:        # may run unconfined, in exactly this version
#   - {{skill: ~/skills/release, digest: "sha256:..."}}
# workspaces: [~/notes]     # folders that are refused as a workspace otherwise
# floor: {{require: confined}}     # no flag of the command line goes past this
#
# For one skill, here or there (`skillrun show SKILL` prints its digest):
#
# skills:
#   pdf-tools:
#     ceiling: {{timeout: 20}}
"""


@click.command(
    "init",
    cls=Verb,
    context_settings=HELP,
    epilog="\b\nExamples:\n  skillrun init word-count            in ./skills/word-count\n"
    "  skillrun init tools/word-count\n  skillrun init --ceiling             ./skillrun.yaml\n\n"
    "Exit codes: 0 made, 2 something of that name is there already, or it can't be made.",
)
@click.argument("name", required=False)
@click.option("--ceiling", cls=Option, is_flag=True, help="Write a commented ceiling file, ./skillrun.yaml.")
@colour_option
@click.pass_context
def command(ctx: click.Context, *, name: str | None, ceiling: bool) -> int:
    """Make a skill that works, to change into your own.

    NAME alone makes ./skills/NAME; with a slash it is the folder itself.
    """
    if name is None and not ceiling:
        raise click.UsageError("what to make is missing\nname a skill, or write `--ceiling`", ctx=ctx)
    folder = None if name is None else _folder(name)
    files = {} if folder is None else _skill(folder)
    if ceiling:
        config = "~/.config/skillrun/skillrun.yaml"
        files[current() / CEILING] = (_LIMITS.format(config=config), 0o644)
    _make(folder, files)
    emit(f"made {near(path, current())}" for path in files)
    if folder is not None:
        short = folder.name if folder.parent == current() / ROOT else near(folder, current())
        short = short if "/" in short or folder.parent == current() / ROOT else f"./{short}"
        emit(["", f"try it: skillrun run {short} -- {near(folder, current())}/SKILL.md"])
    return 0


def _folder(name: str) -> Path:
    """Return where a skill goes. UsageError when its name can't be a skill's."""
    key = Path(name).name
    if as_key(key) != key:
        guess = "-".join("".join(c if c.isalnum() and c.isascii() else " " for c in key.lower()).split())
        advice = f"did you mean `{guess}`?" if as_key(guess) else None
        raise UsageError(
            error("name-rule", f"`{key}` can't be the name of a skill ({RULE_TEXT})", help=advice)
        )
    return current() / name if "/" in name else current() / ROOT / name


def _skill(folder: Path) -> dict[Path, tuple[str, int]]:
    return {
        folder / "SKILL.md": (_MANIFEST.format(name=folder.name), 0o644),
        folder / "scripts" / "count.sh": (_SCRIPT, 0o755),
    }


def _make(folder: Path | None, files: Mapping[Path, tuple[str, int]]) -> None:
    """Write files, each new. Looked at first, so that nothing is made by halves."""
    for path in (*([folder] if folder is not None else []), *files):
        if path.is_symlink() or path.exists():
            message = f"`{path}` is there already, and nothing is overwritten"
            raise UsageError(
                error("init-exists", message, at=At(path), help="choose another name, or move it away")
            )
    try:
        if folder is not None:
            folder.mkdir(parents=True)
            (folder / "scripts").mkdir()
        for path, (text, mode) in files.items():
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
            path.chmod(mode)
    except OSError as wrong:
        reason = wrong.strerror or "unknown reason"
        raise UsageError(error("init-failed", f"`{wrong.filename}` can't be made: {reason}")) from None
