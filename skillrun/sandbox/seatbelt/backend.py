"""The Seatbelt backend: what macOS enforces of a policy, and the plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skillrun.problem import Problem, error, warning
from skillrun.sandbox.backend import LaunchPlan
from skillrun.sandbox.guarantee import Guarantees, State, written
from skillrun.sandbox.wire import cwd, wire

if TYPE_CHECKING:
    from skillrun.sandbox.backend import Probe
    from skillrun.sandbox.landscape import Landscape
    from skillrun.sandbox.policy import Policy

NAME: Final = "seatbelt"
LAUNCHER: Final = "/usr/bin/sandbox-exec"
"""By its absolute path: one found on PATH could be anybody's."""
# The folders of `profiles/seatbelt/system.sb.j2` that hold programs.
_SYSTEM_PATH: Final = frozenset({"/usr/bin", "/bin", "/usr/sbin", "/sbin"})


@dataclass(frozen=True, slots=True)
class Seatbelt:
    """A generated profile and sandbox-exec. Rendered and evaluated on every platform, run on macOS.

    `log` also reads from the system's log what was denied.
    """

    log: bool = False

    @property
    def name(self) -> str:
        """The name that `--backend` takes."""
        return f"{NAME}-log" if self.log else NAME

    def problems(self, probe: Probe) -> tuple[Problem, ...]:
        """Say why this backend can't be used on this host."""
        if probe.platform != "darwin":
            message = f"the backend `seatbelt` needs macOS, and this is {probe.platform}"
            return (error("backend-platform", message),)
        return probe.problems

    def splits(self, probe: Probe) -> bool:  # noqa: ARG002 - one protocol
        """Grant nothing in parts: a rule can deny."""
        return False

    def guarantees(self, policy: Policy, probe: Probe) -> Guarantees:  # noqa: ARG002 - one protocol
        """Answer for each promise. What nobody published a run of is no more than partial."""
        return Guarantees(
            fs_read=State.ENFORCED,
            fs_write=written(policy),
            network=State.OPEN if policy.network else State.ENFORCED,
            # Two services of the system are asked by name, and named semaphores are one name space for all.
            ipc=State.PARTIAL,
            # There are no process namespaces, and nothing keeps a script in its process group.
            processes=State.PARTIAL,
            environment=State.ENFORCED,
            limits=State.PARTIAL,  # memory and processes are watched among those that could be found
            names=State.PARTIAL,  # folders above granted paths can be looked up
            signals=State.ENFORCED,
            network_asked=policy.network,
        )

    def render(self, policy: Policy, landscape: Landscape, probe: Probe) -> str:  # noqa: ARG002 - one protocol
        """Write the profile, for people: the values of its parameters stand in front, as comments."""
        from skillrun.sandbox.seatbelt.render import render  # noqa: PLC0415 - it brings Jinja2

        rendered = render(policy, landscape)
        values = [f"; -D {name}={_one_line(value)}" for name, value in rendered.parameters]
        return "\n".join([*values, rendered.text])

    def plan(self, policy: Policy, landscape: Landscape, probe: Probe) -> LaunchPlan:
        """Make the plan: what `launch` starts in a session of its own."""
        from skillrun.sandbox.seatbelt.render import render  # noqa: PLC0415 - it brings Jinja2

        rendered = render(policy, landscape)
        plan = wire(policy, landscape, mode="session")
        return LaunchPlan(
            backend=NAME,
            level=None,
            guarantees=self.guarantees(policy, probe),
            wire={
                **plan,
                "env": {**plan["env"], "PATH": search_path(policy)},
                "cwd": cwd(policy, landscape),
                "profile": rendered.text,
                "parameters": list(rendered.parameters),
                "log": self.log,
            },
            warnings=(
                warning(
                    "processes-partial",
                    "macOS can't keep a script in its process group: one that leaves it on purpose is looked for "
                    "and killed, and may be missed; it stays confined",
                ),
            ),
        )


def search_path(policy: Policy) -> str:
    """Return PATH without the folders that the profile keeps closed.

    execvp goes on after a folder that holds no such name, and stops at one that it may not look into: EPERM is
    none of the errors it passes over. Where the interpreter lies behind a link, its real folder takes the place.
    """
    real = [] if policy.interpreter is None else [str(policy.interpreter.real.parent)]
    named = dict(policy.environ).get("PATH", "").split(":")
    opened = [f"{rule.path}/" for rule in policy.rules]
    return ":".join(
        dict.fromkeys(
            folder
            for folder in (*real, *named)
            if folder in _SYSTEM_PATH or any(f"{folder}/".startswith(top) for top in opened)
        )
    )


def _one_line(value: str) -> str:
    """Write a path so that it can't end the comment it stands in."""
    return "".join(letter if letter.isprintable() else f"\\u{ord(letter):04x}" for letter in value)
