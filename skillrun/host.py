"""The host: what a command line or a program knows of its surroundings and hands to the library.

`current_host` is the one place that reads the process's environment; nothing below it does.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

MACHINE_FILE: Final = Path("/etc/skillrun/skillrun.yaml")


@dataclass(frozen=True, slots=True)
class Host:
    """Surroundings. Everything absent is None, and what depends on it is then an error or left out.

    `environ` gives PATH and granted variables. `config_file` and `machine_file` need not exist.
    `temporary` is where scratch folders are made, `state` where logs and quarantine go.
    """

    home: Path | None = None
    environ: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    config_file: Path | None = None
    machine_file: Path | None = None
    temporary: Path = Path("/tmp")  # noqa: S108 - a fresh 0700 folder with a random name is made in it
    state: Path | None = None


def current_host() -> Host:
    """Describe the surroundings of this process: HOME, the XDG folders, the environment."""
    environ = dict(os.environ)
    home = _home(environ)
    config = _folder(environ, "XDG_CONFIG_HOME", home, ".config")
    state = _folder(environ, "XDG_STATE_HOME", home, ".local/state")
    return Host(
        home=home,
        environ=MappingProxyType(environ),
        config_file=config and config / "skillrun" / "skillrun.yaml",
        machine_file=MACHINE_FILE,
        temporary=Path(tempfile.gettempdir()).resolve(),
        state=state and state / "skillrun",
    )


def _home(environ: Mapping[str, str]) -> Path | None:
    """Return the home folder, physical; None when it is not an absolute path."""
    named = environ.get("HOME", "")
    if not named:
        try:
            named = str(Path.home())
        except RuntimeError:
            return None
    return Path(named).resolve() if named.startswith("/") else None


def _folder(environ: Mapping[str, str], name: str, home: Path | None, usual: str) -> Path | None:
    """Return an XDG folder; a relative one is ignored, as the specification says."""
    named = environ.get(name, "")
    if named.startswith("/"):
        return Path(named)
    return home / usual if home is not None else None
