"""Assemble: a runner and what listens put together into a service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillrun.mcp.calls import Calls
from skillrun.mcp.offer import Offer
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

    `named` are the roots that were named, `more` tools beside those of skills. `on_result` is told what came of
    every call, `on_problems` what is left out of the tools; both are the operator's.
    """

    runner: Runner
    named: tuple[Path, ...]
    at_once: int
    on_result: Callable[[ToolCall, Outcome], object]
    on_problems: Callable[[tuple[Problem, ...]], object]
    more: tuple[Tool, ...] = ()

    def make(self) -> Service:
        """Make the service."""
        approved: set[str] = set()
        calls = Calls(self.at_once)
        offer = Offer(
            self.runner,
            named=self.named,
            more=self.more,
            approve=lambda call, _tool: call.id in approved,
            on_progress=calls.progressed,
            on_result=self.on_result,
            on_problems=self.on_problems,
        )
        return Service(offer, calls, approved=approved)
