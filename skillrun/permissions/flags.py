"""Flags: what an operator adds for one run, on the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillrun.errors import UsageError
from skillrun.permissions.endpoint import Endpoint
from skillrun.permissions.grant import Capability
from skillrun.permissions.request import Asked
from skillrun.permissions.spelled import path_fault
from skillrun.problem import At, error

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Flags:
    """`--read`, `--write`, `--network`, `--env` and `--timeout` of one run.

    They add to the request and raise the base to the same value. Paths are relative to the workspace;
    a caller in another folder makes them absolute. `network` True is the flag without a value.
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    network: bool | tuple[str, ...] = False
    env: tuple[str, ...] = ()
    timeout: float | None = None

    def asked(self) -> tuple[Asked, ...]:
        """Return the flags as things asked for. UsageError for a value that no flag can have."""
        return tuple(self._asked())

    def _asked(self) -> Iterator[Asked]:
        for capability, flag, paths in (
            (Capability.FS_READ, "--read", self.read),
            (Capability.FS_WRITE, "--write", self.write),
        ):
            for path in paths:
                fault = path_fault(path)
                if fault is not None:
                    raise _wrong(flag, fault[0], fault[1])
                yield Asked(capability, path, At(flag=flag))
        if self.network is True:
            yield Asked(Capability.NETWORK, value=True, at=At(flag="--network"))
        for host in self.network if isinstance(self.network, tuple) else ():
            yield self._endpoint(host)
        for name in self.env:
            yield Asked(Capability.ENV, name, At(flag="--env"))
        if self.timeout is not None:
            if not 0 < self.timeout < float("inf"):
                raise _wrong(
                    "--timeout",
                    f"`{self.timeout}` is not a number of seconds above 0",
                    "write `--timeout 30`",
                )
            yield Asked(Capability.TIMEOUT, self.timeout, At(flag="--timeout"))

    def _endpoint(self, host: str) -> Asked:
        try:
            endpoint = Endpoint.parse(host)
        except ValueError as wrong:
            raise _wrong(
                "--network", f"`{host}` is no host rule: {wrong}", "write `host` or `host:port`"
            ) from None
        return Asked(Capability.NETWORK, str(endpoint), At(flag="--network"), endpoint=endpoint)


def _wrong(flag: str, message: str, advice: str) -> UsageError:
    return UsageError(error("flag-value", f"{flag}: {message}", at=At(flag=flag), help=advice))
