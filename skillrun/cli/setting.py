"""Setting: the options that commands share, and the Runner they make."""

from __future__ import annotations

import contextlib
import functools
import os
import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from skillrun.cli.command import Option, colour_option, verbose_option
from skillrun.cli.terminal import here
from skillrun.errors import UsageError
from skillrun.host import current_host
from skillrun.permissions.config import preset_names
from skillrun.permissions.flags import Flags
from skillrun.problem import error
from skillrun.runner import Runner
from skillrun.running.admission import AT_ONCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from skillrun.cli.interrupts import Interrupts
    from skillrun.running.recorder import Recorder
    from skillrun.skills.model import Skill

T = TypeVar("T")
_HOST: Final = re.compile(r"\[|\*\.|[^/]*:")
_ANY: Final = ""  # `--network` without a value


@dataclass(frozen=True, slots=True)
class Setting:
    """What the common options said."""

    skills: tuple[str, ...] = ()
    ceiling: str | None = None
    workspace: str | None = None
    backend: str | None = None
    require: str | None = None
    allow_unconfined: bool = False

    @contextlib.contextmanager
    def runner(
        self,
        interrupts: Interrupts,
        *,
        at_once: int = AT_ONCE,
        recorder: Recorder | None = None,
        start: bool = True,
        hidden: Sequence[Path] = (),
    ) -> Iterator[Runner]:
        """Give a Runner and close it. Signals wait while the launcher starts and while it buries its runs.

        Without `start` the launcher is started by the first run: for who handles signals without an exception.
        """
        runner = Runner(
            workspace=self.folder(),
            skills=tuple(current() / root for root in self.skills),
            ceiling=self.named_ceiling(),
            require=self.require,
            backend=self.backend,
            allow_unconfined=self.allow_unconfined,
            host=current_host(),
            at_once=at_once,
            recorder=recorder,
            hidden=hidden,
        )
        try:
            if start:
                with interrupts.held():
                    runner.launcher.start()
            yield runner
        finally:
            with interrupts.held():
                runner.close()

    def folder(self) -> Path:
        """Return the workspace: the one that was named, else the caller's current folder."""
        return current() / self.workspace if self.workspace is not None else current()

    def named_ceiling(self) -> Path | str | None:
        """Tell a file from a preset: a preset's name is one, whatever file lies here."""
        named = self.ceiling
        if named is None or named in preset_names():
            return named
        path = current() / named
        file = "/" in named or named.endswith((".yaml", ".yml")) or os.path.isfile(path)  # noqa: PTH113 - Path.is_file raises for EACCES
        return path if file else named


def current() -> Path:
    """Return the caller's current folder. UsageError when somebody removed it."""
    folder = here()
    if folder is None:
        raise UsageError(
            error(
                "workspace-missing", "the current folder does not exist any more", help="go into another one"
            )
        )
    return folder


def named_skill(text: str, runner: Runner) -> Skill | Path | str:
    """Tell a folder from a key: text with a slash, `.` and `..` are folders, a bare name is a key first.

    A bare name that is a key and a folder of the current folder at once is refused, unless both are the
    same: what was cloned last must not take the name of a skill of the operator's own (DESIGN 6).
    """
    folder = current() / text
    if "/" in text or text in {".", ".."}:
        return folder
    if not os.path.isdir(folder):  # noqa: PTH112 - Path.is_dir raises for EACCES
        return text
    try:
        skill = runner.catalog().by_key(text)
    except UsageError as wrong:
        if wrong.problem.rule != "skill-unknown":
            raise
        return folder
    if os.path.exists(folder / "SKILL.md") and skill.path != folder.resolve():  # noqa: PTH110 - Path.exists raises for EACCES
        message = f"`{text}` is a skill in `{skill.found}` and also a folder here"
        raise UsageError(
            error("skill-which", message, help=f"write `./{text}` for the folder, or the path of the other")
        )
    return skill


def setting_options(
    *, running: bool, serving: bool = False
) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Add the common options; the command gets them as `setting`. `running` adds those about enforcement.

    `serving` is for a command that runs what others ask for: no default workspace, no way without confinement.
    """
    options = [
        click.option(
            "--skills",
            "skills",
            cls=Option,
            section="Input",
            multiple=True,
            metavar="DIR",
            help="A root to look for skills in; may be repeated.  [default: ./skills, ./.agents/skills, "
            "./.claude/skills, then the same in your home]",
        ),
        click.option(
            "--workspace",
            cls=Option,
            section="Input",
            metavar="DIR",
            help="The folder a script works in; needed."
            if serving
            else "The folder a script works in.  [default: the current folder]",
        ),
    ]
    if running:
        options += [
            click.option("--ceiling", cls=Option, section="Sandbox", metavar="FILE|PRESET",
                         help="The most a skill may have.  [default: your own skillrun.yaml, else `default`]"),
            click.option("--backend", cls=Option, section="Sandbox", metavar="NAME",
                         help="What enforces it.  [default: this platform's]"),
            click.option("--require", cls=Option, section="Sandbox", type=click.Choice(["full", "confined"] if serving else ["full", "confined", "none"]),
                         help="The least enforcement a run may have.  [default: the ceiling's]"),
            click.option("--allow-unconfined", cls=Option, section="Sandbox", is_flag=True,
                         help="Accept a run without confinement where no floor forbids it."),
        ]  # fmt: skip
    if serving:
        options.pop()
    return _collected(options, Setting, "setting")


def flag_options(function: Callable[..., T]) -> Callable[..., T]:
    """Add the permissions of one run; the command gets them as `flags`, relative paths made absolute."""
    part = "Permissions for this run"
    options = [
        click.option("--read", cls=Option, section=part, multiple=True, metavar="PATH", help="Let it read PATH as well."),
        click.option("--write", cls=Option, section=part, multiple=True, metavar="PATH", help="Let it write PATH as well."),
        click.option("--network", cls=Option, section=part, multiple=True, metavar="[HOST:PORT]",
                     help="Let it use the network, or one host of it."),
        click.option("--env", cls=Option, section=part, multiple=True, metavar="NAME", help="Pass your variable NAME on to it."),
        click.option("--timeout", cls=Option, section=part, type=float, metavar="SECONDS", help="Let it take so long."),
    ]  # fmt: skip

    @functools.wraps(function)
    def wrapped(**given: Any) -> T:
        return function(flags=_flags(given), **given)

    return _added(options, wrapped)


def values_of_network(words: Sequence[str]) -> list[str]:
    """Give every `--network` a value, since click knows no option that may go without one.

    The word behind it is its value when it looks like `host:port`, `*.suffix` or `[address]`; else it
    is the skill or the script. What stands behind `--` is the script's own.
    """
    own = list(words)
    end = own.index("--") if "--" in own else len(own)
    done: list[str] = []
    place = 0
    while place < end:
        word = own[place]
        if word == "--network":
            following = own[place + 1] if place + 1 < end else ""
            host = bool(_HOST.match(following))
            done.append(f"--network={following if host else _ANY}")
            place += 1 + host
        else:
            done.append(word)
            place += 1
    return done + own[end:]


def output_options(function: Callable[..., T]) -> Callable[..., T]:
    """Add `--json`, which the command gets as `as_json`, `--verbose` and `--color`."""
    as_json = click.option("--json", "as_json", cls=Option, is_flag=True, help="Write JSON for programs.")
    return as_json(verbose_option(colour_option(function)))


def _flags(given: dict[str, Any]) -> Flags:
    hosts = given.pop("network")
    return Flags(
        read=tuple(_from_here(path) for path in given.pop("read")),
        write=tuple(_from_here(path) for path in given.pop("write")),
        network=True if _ANY in hosts else hosts or False,
        env=given.pop("env"),
        timeout=given.pop("timeout"),
    )


def _from_here(path: str) -> str:
    """Make a relative path absolute: the library takes it from the workspace, a person from where they stand."""
    return path if not path or path.startswith(("/", "~", "$")) else f"{current()}/{path}"


def _collected(
    options: Sequence[Any], kind: type[Any], name: str
) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Make a decorator that adds options and hands them over as one value."""

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        @functools.wraps(function)
        def wrapped(**given: Any) -> T:
            known = {field.name: given.pop(field.name) for field in fields(kind) if field.name in given}
            return function(**{name: kind(**known)}, **given)

        return _added(options, wrapped)

    return decorate


def _added(options: Sequence[Any], function: Callable[..., T]) -> Callable[..., T]:
    for option in reversed(options):
        function = option(function)
    return function
