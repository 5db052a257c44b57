"""Teller: what `run` says around a script, on standard error, each line with its speaker's name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillrun.cli.command import say
from skillrun.cli.hint import asks_for_nothing, command_line, helping_flags
from skillrun.cli.terminal import stderr_view
from skillrun.launch.result import Result, Termination
from skillrun.report import running
from skillrun.report.diagnostics import in_passing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillrun.launch.ready import Ready
    from skillrun.permissions.grant import Grant
    from skillrun.problem import Problem
    from skillrun.runner import Runner
    from skillrun.sandbox.backend import LaunchPlan


class Teller:
    """Says on standard error what a run may do before it starts, and how it ended when that says nothing itself."""

    def __init__(self, ctx: click.Context) -> None:
        self._ctx = ctx
        self._view = stderr_view(ctx)
        self._told = False

    def line(self, text: str) -> None:
        """Write one line that says who speaks."""
        click.echo(f"{self._view.style('skillrun:', 'dim')} {text}", err=True, color=True)

    def before(self, ready: Ready, plan: LaunchPlan) -> None:
        """Tell what is about to start: the one line, every cut, every warning."""
        self._told = True
        base = self._view.base
        enforced = running.enforcement(plan.backend, plan.level, plan.guarantees)
        self.line(
            running.headline(
                ready.skill, ready.subject.script.name, ready.grant, enforced=enforced, base=base
            )
        )
        if asks_for_nothing(ready.grant) and ready.grant.unconfined is None:
            self.line(running.NOTHING_TYPED if running.typed(ready.grant) else running.NOTHING)
        self.cuts(ready.grant)
        self.warn((*ready.policy.warnings, *plan.warnings))

    def cuts(self, grant: Grant) -> None:
        """Tell every cut, one a line."""
        for cut in running.cuts(grant, base=self._view.base):
            self.line(cut)

    def warn(self, problems: Sequence[Problem]) -> None:
        """Tell problems that do not stop the run, one a line."""
        for problem in dict.fromkeys(problems):
            self.line(in_passing(problem, base=self._view.base, style=self._view.style))

    def after(self, result: Result) -> None:
        """Tell how a run ended, where its exit code alone does not."""
        if not self._told:
            self.cuts(result.grant)
            self.warn(result.warnings)
        if result.error is not None:
            say(self._ctx, (result.error,))
        if result.termination is Termination.TIMED_OUT:
            self.line(f"stopped after {result.timeout_s:g} s, its deadline")
        elif result.termination is Termination.MEMORY_LIMIT:
            self.line("ended: it used more memory than its limit")
        elif result.termination is Termination.SIGNALED:
            self.line(f"ended by signal {result.signal}")
        if result.leftovers:
            self.line(f"{result.leftovers} of its processes were still there at its end and were ended")
        for denied in result.denials:
            self.line(running.denied(denied, base=self._view.base))
        self.warn(result.violations)

    def advise(self, runner: Runner, result: Result, arguments: Sequence[str]) -> None:
        """Tell the one command that would help a skill that asks for nothing."""
        if not asks_for_nothing(result.grant):
            return
        flags = helping_flags(runner, result, arguments)
        suggested = command_line(flags, self._ctx.meta["words"]) if flags else None
        if suggested is not None:
            self.line("it may have needed more than it asks for; to let it, run:")
            self.line(f"  {suggested}")
