"""`skillrun check`: findings on skills, for CI."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import click

from skillrun.check import baseline as baselines
from skillrun.check import lock as locks
from skillrun.check.engine import Verdict, check
from skillrun.check.policy import Files, own_policy, policy_from
from skillrun.check.registry import RULES
from skillrun.check.session import Session, find_subjects
from skillrun.check.store import write_store
from skillrun.check.suggest import suggest
from skillrun.cli.collection import ceiling_option, session_of
from skillrun.cli.command import HELP, Option, Verb, colour_option, emit, emit_bytes, say
from skillrun.cli.listed import uncollected
from skillrun.cli.setting import Setting, current, setting_options
from skillrun.cli.terminal import stdout_view
from skillrun.problem import Severity, error
from skillrun.report import checking, document, findings, github, sarif, suggesting

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from skillrun.check.engine import Report
    from skillrun.check.policy import Policy
    from skillrun.check.subject import Subject
    from skillrun.problem import Problem

FORMATS: Final = ("plain", "concise", "json", "sarif", "github")


@click.command(
    "check",
    cls=Verb,
    context_settings=HELP,
    epilog="\b\nExamples:\n  skillrun check\n  skillrun check skills --ceiling ceiling.yaml --locked\n"
    "  skillrun check --policy-from origin/main --format github\n  skillrun check --suggest\n\n"
    "Exit codes: 0 clean, 1 findings, 2 wrong usage or configuration, 3 nothing was checked.",
)
@click.argument("roots", metavar="[ROOT]...", nargs=-1)
@setting_options(running=False)
@ceiling_option
@click.option(
    "--policy-from",
    cls=Option,
    section="Input",
    metavar="REV|DIR",
    help="Take ceiling, lock, baseline and ignores from there; a folder is written ./DIR.",
)
@click.option(
    "--locked", cls=Option, section="Input", is_flag=True, help="Compare with skillrun.lock as well."
)
@click.option(
    "--baseline",
    cls=Option,
    section="Input",
    metavar="FILE",
    help="Findings that are accepted.  [default: skillrun-baseline.json, where it is]",
)
@click.option("--write-baseline", cls=Option, is_flag=True, help="Accept everything that is found now.")
@click.option(
    "--suggest",
    "suggesting_only",
    cls=Option,
    is_flag=True,
    help="Show the least request for skills that declare nothing.",
)
@click.option(
    "--fail-on",
    cls=Option,
    type=click.Choice([one.value for one in Severity]),
    default="warning",
    show_default=True,
    help="The least severity that makes exit code 1.",
)
@click.option(
    "--format",
    "form",
    cls=Option,
    type=click.Choice(FORMATS),
    default="plain",
    show_default=True,
    help="How findings are written.",
)
@click.option("--json", "form", cls=Option, flag_value="json", help="The same as `--format json`.")
@colour_option
@click.pass_context
def command(
    ctx: click.Context,
    *,
    roots: tuple[str, ...],
    setting: Setting,
    policy_from: str | None,
    locked: bool,
    baseline: str | None,
    write_baseline: bool,
    suggesting_only: bool,
    fail_on: str,
    form: str,
) -> int:
    """Find what is wrong with the permissions of skills: beyond the ceiling, undeclared, changed.

    Without ROOT: ./skills, ./.agents/skills and ./.claude/skills of the project. The project is the current
    folder, or --workspace.
    """  # fmt: skip
    if write_baseline and policy_from is not None:
        raise click.UsageError(
            "`--write-baseline` and `--policy-from` exclude each other\na baseline is written on the main line",
            ctx=ctx,
        )
    session = session_of(setting, roots)
    files = Files(
        lock=session.folder / locks.FILE_NAME,
        baseline=(session.folder if baseline is None else current()) / (baseline or baselines.FILE_NAME),
    )
    with uncollected():
        policy = _policy(policy_from, session, files)
        if suggesting_only:
            return _suggest(ctx, session, policy, form)
        report = _report(session, policy, files, locked=locked)
        if write_baseline:
            before = baselines.read_baseline(files.baseline)
            made = baselines.baseline_of(report, files.baseline, session.labels(policy.project), before)
            write_store(files.baseline, made.text())
            emit([f"accepted {len(made.entries)} findings in {files.baseline.name}"])
            return 0
        if policy.baseline is not None:
            report = baselines.apply(report, policy.baseline, session.labels(policy.project))
        _write(ctx, report, form, session.folder)
    verdict = report.verdict(Severity(fail_on))
    if verdict is Verdict.NOTHING:
        say(ctx, (_nothing(session, report.subjects),))
    return verdict.value


def _policy(name: str | None, session: Session, files: Files) -> Policy:
    return own_policy(session, files) if name is None else policy_from(name, session, files, current())


def _report(session: Session, policy: Policy, files: Files, *, locked: bool) -> Report:
    catalog, subjects = find_subjects(session, policy.project)
    more = list(policy.findings)
    if locked:
        more += locks.compare(policy.lock, subjects, path=files.lock, roots=session.labels(policy.project))
    return check(catalog, policy.project, subjects=subjects, more=more, belief=policy.belief)


def _write(ctx: click.Context, report: Report, form: str, base: Path) -> None:
    """Write data to standard output; for people the total goes to standard error."""
    if form == "json":
        emit_bytes(document.write(checking.shape(report, base)))
    elif form == "sarif":
        emit_bytes(document.write(sarif.log(report, RULES, base)))
    elif form == "github":
        emit(github.lines(report, base))
        return
    else:
        view = replace(stdout_view(ctx), base=base)
        lines = list(findings.plain(report, view) if form == "plain" else findings.concise(report, base))
        if lines:
            emit(lines)
    click.echo(findings.total(report), err=True)


def _nothing(session: Session, subjects: Sequence[Subject]) -> Problem:
    """Say why nothing, or not everything, was checked."""
    looked = (
        ", ".join(f"`{root}`" for root in session.looked_through())
        or f"the usual folders of `{session.folder}`"
    )
    if subjects:
        return error(
            "check-incomplete",
            f"not every root was looked through: {looked}",
            help="correct the roots that are named",
        )
    return error(
        "skills-none",
        f"no skills found in {looked}, so nothing was checked",
        help="name a folder that has skills in it",
    )


def _suggest(ctx: click.Context, session: Session, policy: Policy, form: str) -> int:
    """Write what skills that declare nothing could ask for; 3 where there is no skill at all."""
    _, subjects = find_subjects(session, policy.project)
    suggestions = [one for subject in subjects if (one := suggest(subject)) is not None]
    if form == "json":
        emit_bytes(document.write(suggesting.shape(suggestions, session.folder)))
    elif suggestions:
        emit(suggesting.lines(suggestions, replace(stdout_view(ctx), base=session.folder)))
    if not subjects:
        say(ctx, (_nothing(session, subjects),))
        return Verdict.NOTHING.value
    click.echo(f"{len(suggestions)} of {len(subjects)} skills declare nothing", err=True)
    return 0
