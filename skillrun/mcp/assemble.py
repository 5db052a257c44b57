"""Assemble: a runner and what listens put together into a service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillrun.mcp.calls import Calls
from skillrun.mcp.offer import Offer
from skillrun.mcp.roots import Roots
from skillrun.mcp.server import Service

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from skillrun.problem import Problem
    from skillrun.runner import Runner
    from skillrun.tools.outcome import Outcome, ToolCall
    from skillrun.tools.tool import Tool


@dataclass(frozen=True, slots=True)
class Assembly:
    """What a service is made of. `make` is called inside the loop that serves it.

    `named` are the roots of skills that were named, `more` tools beside those of skills. `narrow` makes a runner
    for a folder of the workspace, where a client's roots leave no more of it. `on_result` is told what came of
    every call, `on_problems` what is left out of the tools; both are the operator's.
    """

    runner: Runner
    named: tuple[Path, ...]
    at_once: int
    narrow: Callable[[Path], Runner]
    on_result: Callable[[ToolCall, Outcome], object]
    on_problems: Callable[[tuple[Problem, ...]], object]
    more: tuple[Tool, ...] = ()

    def make(self) -> Service:
        """Make the service."""
        approved: set[str] = set()
        calls = Calls(self.at_once)

        def offer(runner: Runner) -> Offer:
            return Offer(
                runner,
                named=self.named,
                more=self.more,
                approve=lambda call, _tool: call.id in approved,
                on_progress=calls.progressed,
                on_result=self.on_result,
                on_problems=self.on_problems,
            )

        roots = Roots(offer(self.runner), lambda folder: offer(self.narrow(folder)))
        return Service(roots, calls, approved=approved)
