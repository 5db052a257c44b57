"""`skillrun rule`: the page of a rule, or all rules in one phrase each."""

from __future__ import annotations

import difflib

import click

from skillrun.check.registry import BY_NAME, RULES
from skillrun.cli.command import HELP, Verb, colour_option, emit
from skillrun.cli.terminal import stdout_view
from skillrun.errors import UsageError
from skillrun.problem import error


@click.command(
    "rule",
    cls=Verb,
    context_settings=HELP,
    epilog="\b\nExamples:\n  skillrun rule\n  skillrun rule exfiltration-pair\n\n"
    "Exit codes: 0 shown, 2 there is no such rule.",
)
@click.argument("name", required=False)
@colour_option
@click.pass_context
def command(ctx: click.Context, *, name: str | None) -> int:
    """Show the page of a rule of `check`: what it finds, why that matters, what to do. Without NAME, all rules."""
    view = stdout_view(ctx)
    if name is None:
        wide = max(len(rule.name) for rule in RULES) + 2
        emit(f"{view.style(rule.name, 'bold')}{' ' * (wide - len(rule.name))}{rule.phrase}" for rule in RULES)
        return 0
    rule = BY_NAME.get(name)
    if rule is None:
        near = difflib.get_close_matches(name, BY_NAME, n=1)
        help_ = f"did you mean `{near[0]}`?" if near else "`skillrun rule` lists them"
        raise UsageError(error("rule-unknown", f"there is no rule `{name}`", help=help_))
    emit([f"{view.style(rule.name, 'bold')}: {rule.page.rstrip()}", "", f"Severity: {rule.severity.value}."])
    return 0
