"""`skillrun diff`: what a change does to the permissions of skills; of two profiles, see `diff_profiles`."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import click

from skillrun.check.base import is_folder, open_base
from skillrun.check.difference import difference
from skillrun.check.engine import subjects_of
from skillrun.cli.collection import session_of
from skillrun.cli.command import HELP, Option, Verb, colour_option, emit, emit_bytes, say
from skillrun.cli.diff_profiles import SUFFIX, diff_profiles
from skillrun.cli.listed import uncollected
from skillrun.cli.reading import define
from skillrun.cli.setting import Setting, current, setting_options
from skillrun.cli.terminal import stdout_view
from skillrun.problem import error
from skillrun.report import differing, document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillrun.check.difference import SkillChange
    from skillrun.check.session import Session
    from skillrun.check.subject import Subject

NOTHING = 3


@click.command(
    "diff",
    cls=Verb,
    context_settings=HELP,
    epilog="\b\nExamples:\n  skillrun diff origin/main\n  skillrun diff v1.0 v1.1 --format markdown\n  skillrun diff ./old ./new\n  skillrun diff -D HOME=/Users/ann old.sb new.sb\n\n"
    "Exit codes: 0 no skill can do or asks for more, 1 some skill does, 2 wrong usage, 3 no skill was found.",
)
@click.argument("base")
@click.argument("head", required=False)
@setting_options(running=False)
@click.option(
    "--ceiling",
    cls=Option,
    section="Input",
    metavar="FILE|PRESET",
    help="The most a skill may have; a file of the project is taken from each version.  [default: `default`]",
)
@define
@click.option(
    "--format",
    "form",
    cls=Option,
    type=click.Choice(["plain", "markdown", "json"]),
    default="plain",
    show_default=True,
    help="How it is written.",
)
@click.option("--json", "form", cls=Option, flag_value="json", help="The same as `--format json`.")
@colour_option
@click.pass_context
def command(
    ctx: click.Context,
    *,
    base: str,
    head: str | None,
    setting: Setting,
    definitions: tuple[str, ...],
    form: str,
) -> int:
    """Show what skills gained, lost and widened between BASE and HEAD.

    Each is a git revision, or a folder written with a slash (`./old`). Without HEAD: the project as it lies here.
    Two Seatbelt profiles (`old.sb new.sb`) are asked about everything that either names instead.
    """  # fmt: skip
    if head is not None and base.endswith(SUFFIX) and head.endswith(SUFFIX):
        return diff_profiles(ctx, base, head, definitions, form=form)
    session = session_of(setting)
    with uncollected(), contextlib.ExitStack() as stack:
        seen, before = _version(base, session, stack)
        seen_too, after = _version(head, session, stack) if head is not None else _here(session)
        changes = difference(before, after)
        _write(ctx, changes, form)
    unseen = [
        f"`{root}`" for number, root in enumerate(session.roots) if not (seen[number] or seen_too[number])
    ]
    if unseen or not (before or after):
        looked = f"neither version has {', '.join(unseen)}" if unseen else "neither version has a skill"
        say(
            ctx,
            (
                error(
                    "skills-none", f"{looked}, so that was not compared", help="correct what `--skills` names"
                ),
            ),
        )
        return NOTHING
    return 1 if any(change.more for change in changes) else 0


def _here(session: Session) -> tuple[list[bool], tuple[Subject, ...]]:
    """Give the skills of the project as it lies here, and which of the named roots are there."""
    roots = [root.is_dir() for root in session.roots]
    found = [root for root in session.looked_through() if root.is_dir()]
    return roots, subjects_of(session.catalog(found), session.project())


def _version(
    name: str, session: Session, stack: contextlib.ExitStack
) -> tuple[list[bool], tuple[Subject, ...]]:
    """Give the same of a revision or a folder, under the ceiling of that version. It lies on disk until the stack ends."""
    there = stack.enter_context(open_base(name, session.folder, current(), session.host))
    roots = session.base_roots(there)
    if is_folder(name) and not roots and not session.roots:
        roots = (there.folder,)  # a folder of skills was named, and not a project that has one
    named = [there.counterpart(root) for root in session.roots]
    seen = [root is not None and root.is_dir() for root in named]
    return seen, subjects_of(session.catalog(roots), session.base_project(there))


def _write(ctx: click.Context, changes: Sequence[SkillChange], form: str) -> None:
    if form == "json":
        emit_bytes(document.write(differing.shape(changes)))
    elif form == "markdown":
        emit(differing.markdown(changes))
        return
    else:
        found = list(differing.lines(changes, stdout_view(ctx)))
        if found:
            emit(found)
    click.echo(differing.total(changes), err=True)
