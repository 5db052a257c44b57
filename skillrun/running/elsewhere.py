"""Elsewhere: a runner as plain data, and a call made by it in another process or on another machine."""

from __future__ import annotations

import atexit
import functools
import pickle
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skillrun import __version__
from skillrun.errors import ConfigError, UsageError
from skillrun.problem import error

if TYPE_CHECKING:
    from collections.abc import Iterable
    from concurrent.futures import Executor, Future
    from pathlib import Path

    from skillrun.host import Host
    from skillrun.launch.result import Result
    from skillrun.permissions.grant import Requirement
    from skillrun.permissions.layers import Layers
    from skillrun.runner import Runner
    from skillrun.running.call import Call
    from skillrun.sandbox.choose import Choice


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything a Runner is made from, and the layers it read, so that another one can be held to the same.

    Of the environment only what a run could get is in it: a worker need not know the caller's other secrets.
    """

    workspace: Path
    skills: tuple[Path, ...]
    ceiling: Path | str | None
    require: Requirement | None
    backend: str | None
    allow_unconfined: bool
    host: Host
    layers: Layers
    version: str = __version__

    def made(self) -> Runner:
        """Make the runner. ConfigError when what limits it here is not what limited it where it comes from."""
        from skillrun.runner import Runner  # noqa: PLC0415 - the runner makes recipes

        if self.version != __version__:
            message = f"the caller has skillrun {self.version}, this worker has {__version__}"
            raise ConfigError(error("worker-version", message, help="install the same version on both"))
        runner = Runner(
            workspace=self.workspace,
            skills=self.skills,
            ceiling=self.ceiling,
            require=self.require,
            backend=self.backend,
            allow_unconfined=self.allow_unconfined,
            host=self.host,
        )
        if runner.layers != self.layers:
            message = "the ceiling that this worker reads is not the caller's, so nothing is run"
            advice = "let both read the same files: --ceiling, skillrun.yaml, the machine file"
            raise ConfigError(error("worker-ceiling", message, help=advice))
        return runner


def recipe_of(runner: Runner, choice: Choice, made_from: tuple[tuple[Path, ...], Path | str | None]) -> bytes:
    """Pickle what another process makes the same runner from; `made_from` are its skill roots and its ceiling."""
    skills, ceiling = made_from
    return pickle.dumps(
        Recipe(
            workspace=runner.workspace,
            skills=tuple(root.absolute() for root in skills),
            ceiling=ceiling,
            require=choice.require,
            backend=choice.backend,
            allow_unconfined=choice.allow_unconfined,
            host=_portable(runner.host, runner.layers),
            layers=runner.layers,
        )
    )


def _portable(host: Host, layers: Layers) -> Host:
    """Return a host that can be pickled, with the variables that a run could get and no others."""
    ceilings = [
        layers.base,
        *layers.projects,
        *layers.hard,
        *(e.ceiling for e in layers.entries if e.ceiling),
    ]
    named = {name for ceiling in ceilings if ceiling.env is not None for name, _ in ceiling.env.value}
    named |= {"PATH", "USER", "LOGNAME", "LANG", "TZ"}
    environ = {key: value for key, value in host.environ.items() if key in named or key.startswith("LC_")}
    return replace(host, environ=environ)


class There:
    """Has calls made by an executor."""

    def __init__(self, executor: Executor, recipe: bytes) -> None:
        self._executor = executor
        self._recipe = recipe

    def submit(self, call: Call) -> Future[Result]:
        """Hand a call over. UsageError for a call that asks for a variable: the caller's are not sent."""
        if call.flags is not None and call.flags.env:
            message = f"`{call.flags.env[0]}` is a variable of this process, and the call is made in another"
            raise UsageError(error("flag-env-elsewhere", message, help="grant it by `env` in the ceiling"))
        return self._executor.submit(run_elsewhere, self._recipe, call)

    def abandon(self, futures: Iterable[Future[Result]]) -> None:
        """Drop what the executor has not begun; what runs elsewhere ends there, by its own deadline at the latest."""
        for future in futures:
            future.cancel()


def run_elsewhere(recipe: bytes, call: Call) -> Result:
    """Make one call by a runner of this process that is made from a pickled recipe: what an executor is given."""
    return _runner(recipe).run_call(call)


# An executor has no other place for what outlives one call. It holds launchers, not results; they end with
# the process, as they watch it. A forked copy may find its parent's here, and its launcher starts anew.
@functools.lru_cache(maxsize=8)
def _runner(recipe: bytes) -> Runner:
    """Make a runner once for each recipe."""
    made: Recipe = pickle.loads(recipe)  # noqa: S301 - it comes from the executor, as this code does
    runner = made.made()
    atexit.register(runner.close)
    return runner
