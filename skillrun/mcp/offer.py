"""Offer: the tools that are served now, made anew when the skills on disk have changed."""

from __future__ import annotations

import os
import stat
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skillrun.problem import warning
from skillrun.roots import skill_roots
from skillrun.tools.box import Toolbox
from skillrun.tools.script_tool import script_tools

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from skillrun.problem import Problem
    from skillrun.runner import Runner
    from skillrun.skills.catalog import Catalog
    from skillrun.tools.box import Turn
    from skillrun.tools.outcome import Outcome, ToolCall
    from skillrun.tools.tool import Tool

    Approve = Callable[[ToolCall, Tool], bool]
    OnProgress = Callable[..., object]
    OnResult = Callable[[ToolCall, Outcome], object]

_MOST_ENTRIES: Final = 20_000  # as discovery: what is beyond is not looked at
_DEPTH: Final = 9  # a skill lies at depth 6 of a root at most, a script at depth 3 of it

Sign = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Offered:
    """The tools of one moment by name, and what the disk was like then."""

    box: Toolbox
    turn: Turn
    by_name: Mapping[str, Tool]
    sign: Sign
    catalog: Catalog

    @property
    def tools(self) -> tuple[Tool, ...]:
        """All tools, those that a search would defer too: a client searches by itself."""
        return self.turn.tools


class Offer:
    """Thread-safe. `more` are tools beside those of skills. `on_problems` is told what is left out, once for each change."""

    def __init__(
        self,
        runner: Runner,
        *,
        named: tuple[Path, ...],
        more: Iterable[Tool] = (),
        approve: Approve,
        on_progress: OnProgress,
        on_result: OnResult,
        on_problems: Callable[[tuple[Problem, ...]], object],
    ) -> None:
        self.runner = runner
        self._named = named
        self._more = tuple(more)
        self._approve = approve
        self._on_progress = on_progress
        self._on_result = on_result
        self._on_problems = on_problems
        self._lock = threading.Lock()
        self._now: Offered | None = None

    def now(self) -> Offered:
        """Return the tools as the disk has them; they are made anew only when it has changed."""
        with self._lock:
            sign = self._sign()
            if self._now is None or self._now.sign != sign:
                self._now = self._made(sign)
            return self._now

    def close(self) -> None:
        """Remove what the toolbox holds."""
        with self._lock:
            if self._now is not None:
                self._now.box.close()

    def _made(self, sign: Sign) -> Offered:
        scripts, problems = script_tools(self.runner)
        # The operator chose the servers, and named them; a skill of such a name is whoever's.
        taken = {one.full_name for one in self._more}
        left = [one for one in scripts if one.full_name in taken]
        problems += tuple(
            warning("tool-clash", f"the tool `{one.full_name}` of a skill is left out: a server has it")
            for one in left
        )
        # Scripts first: what is beyond the most tools is cut at the end, and a server lists what it likes.
        box = Toolbox(
            (*(one for one in scripts if one.full_name not in taken), *self._more),
            max_tools=self.runner.layers.tools.max_tools,
            approve=self._approve,
            on_progress=(self._on_progress,),
            on_result=(self._on_result,),
            spill=False,  # long results go to the shelf: a client need not see our files
            name="mcp",
        )
        turn = box.turn()
        self._on_problems((*problems, *turn.problems))
        return Offered(box, turn, {one.full_name: one for one in turn.tools}, sign, self.runner.catalog())

    def _sign(self) -> Sign:
        """Return what changes when a skill comes, goes or is written to."""
        roots = [root for root, _ in skill_roots(self.runner.workspace, self.runner.host, self._named)]
        return tuple(_signs(roots))


def _signs(roots: Iterable[Path]) -> list[object]:
    found: list[object] = []
    pending = [(os.fspath(root), 0) for root in roots]
    while pending and len(found) < _MOST_ENTRIES:
        folder, depth = pending.pop()
        try:
            with os.scandir(folder) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            found.append((folder, None))
            continue
        for entry in listed:
            if entry.name in {".git", "node_modules", ".venv", "__pycache__"}:
                continue
            try:
                status = entry.stat()
            except OSError:
                continue
            if stat.S_ISDIR(status.st_mode) and depth < _DEPTH:
                found.append(entry.path)
                pending.append((entry.path, depth + 1))
            else:
                found.append(
                    (entry.path, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
                )
    return found
