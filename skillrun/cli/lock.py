"""`skillrun lock`: what is approved, and approving it, which only a person at a terminal does."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from skillrun.check import lock as locks
from skillrun.check.rights import changes, rights
from skillrun.check.session import find_subjects
from skillrun.check.store import write_store
from skillrun.cli.collection import ceiling_option, session_of
from skillrun.cli.command import HELP, Option, Verb, colour_option, emit, say
from skillrun.cli.listed import uncollected
from skillrun.cli.setting import Setting, setting_options
from skillrun.cli.terminal import asked, somebody_there, stdout_view
from skillrun.errors import UsageError
from skillrun.problem import error
from skillrun.report import approving, diagnostics
from skillrun.skills.discover import RootStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillrun.check.finding import Finding
    from skillrun.check.lock import Lock
    from skillrun.check.subject import Subject

NOTHING = 3


@click.command(
    "lock",
    cls=Verb,
    context_settings=HELP,
    epilog="\b\nExamples:\n  skillrun lock                          what differs from skillrun.lock\n"
    "  skillrun lock --approve pdf-tools\n  skillrun lock --approve-all --ceiling ceiling.yaml\n\n"
    "Exit codes: 0 all is approved, 1 something is not, 2 wrong usage, 3 no skill was found.",
)
@click.argument("roots", metavar="[ROOT]...", nargs=-1)
@setting_options(running=False)
@ceiling_option
@click.option(
    "--approve",
    cls=Option,
    section="Input",
    multiple=True,
    metavar="SKILL",
    help="Approve a skill as it is now: its key or its folder; may be repeated.",
)
@click.option(
    "--approve-all", cls=Option, section="Input", is_flag=True, help="Approve all skills that differ."
)
@colour_option
@click.pass_context
def command(
    ctx: click.Context,
    *,
    roots: tuple[str, ...],
    setting: Setting,
    approve: tuple[str, ...],
    approve_all: bool,
) -> int:
    """Show what differs from skillrun.lock, or approve it after a look at a terminal.

    The lock pins each skill's files and permissions. `check --locked` and `run --locked` hold to it.
    """  # fmt: skip
    session = session_of(setting, roots)
    path = session.folder / locks.FILE_NAME
    with uncollected():
        project = session.project()
        catalog, subjects = find_subjects(session, project)
        lock = locks.read_lock(path)
        differing = tuple(locks.compare(lock, subjects, path=path, roots=session.labels(project)))
    unseen = [one.root for one in catalog.founds if one.status is not RootStatus.OK]
    if unseen or not (subjects or differing):
        # What was not looked at can be neither compared nor approved.
        looked = ", ".join(f"`{root}`" for root in unseen) or f"the usual folders of `{session.folder}`"
        problem = error(
            "skills-none", f"no skills found in {looked}", help="name a folder that has skills in it"
        )
        say(ctx, (problem,))
        return NOTHING
    if approve or approve_all:
        return _approve(
            ctx, lock or locks.Lock(path, {}), subjects, _chosen(approve, subjects, differing, lock)
        )
    view = replace(stdout_view(ctx), base=session.folder)
    if differing:
        emit(diagnostics.concise(found.problem, base=view.base) for found in differing)
    broken = [subject.label for subject in subjects if subject.grant is None]
    click.echo(approving.total(subjects, differing, broken), err=True)
    return 1 if differing or broken else 0


def _chosen(
    names: Sequence[str], subjects: Sequence[Subject], differing: Sequence[Finding], lock: Lock | None
) -> tuple[tuple[Subject, ...], tuple[str, ...]]:
    """Return the skills that are to be approved and the entries of skills that are gone. UsageError: no such skill."""
    if not names:
        moved = {found.skill for found in differing}
        gone = tuple(found.key[0] for found in differing if found.skill is None)
        return tuple(subject for subject in subjects if subject.label in moved), gone
    known = {subject.label for subject in subjects}
    chosen: list[Subject] = []
    left: list[str] = []
    for name in names:
        text = name.removeprefix("./").rstrip("/")
        found = [one for one in subjects if one.label == text] or [
            one for one in subjects if one.skill.key == text
        ]
        if len(found) == 1:
            chosen += found
        elif len(found) > 1:
            labels = ", ".join(f"`{one.label}`" for one in found)
            raise UsageError(
                error(
                    "skill-which", f"`{name}` is the name of several skills: {labels}", help="give the folder"
                )
            )
        elif lock is not None and text in lock.entries and text not in known:
            left.append(text)
        else:
            raise UsageError(
                error(
                    "skill-unknown",
                    f"there is no skill `{name}` here",
                    help="`skillrun list` shows all there are",
                )
            )
    return tuple(chosen), tuple(left)


def _approve(
    ctx: click.Context,
    lock: Lock,
    subjects: Sequence[Subject],
    chosen: tuple[tuple[Subject, ...], tuple[str, ...]],
) -> int:
    """Show what would be approved, ask, and write. Refused without a terminal: a script's `yes` is nobody's approval."""
    approved, gone = chosen
    outside = next((subject for subject in approved if subject.label.startswith("/")), None)
    if outside is not None:
        raise UsageError(
            error("lock-outside", f"`{outside.label}` lies outside the project, so its lock is not here")
        )
    made = lock.with_entries(approved, gone)
    if not approved and not gone:
        click.echo("everything is approved already", err=True)
        return 0
    if not somebody_there():
        help_ = "run it yourself, and commit skillrun.lock"
        raise UsageError(
            error("lock-terminal", "approving needs a person at a terminal, and this is none", help=help_)
        )
    view = stdout_view(ctx)
    for subject in approved:
        held = rights(subject)
        assert held is not None  # noqa: S101 - with_entries has refused a skill without
        before = lock.entries.get(subject.label)
        changed = changes(before.rights, held) if before is not None else ()
        for line in approving.lines(subject, held, changed, known=before is not None, view=view):
            click.echo(line, err=True, color=True)
    for label in gone:
        click.echo(approving.gone(label), err=True)
    question = f"approve {len(approved) + len(gone)} of {len(subjects)} skills as they are now? type yes"
    if (asked(f"{question}:", afresh=True) or "").strip().lower() != "yes":
        click.echo("nothing was changed", err=True)
        return 1
    write_store(lock.path, made.text())
    click.echo(f"wrote {lock.path.name}; commit it", err=True)
    return 0
