"""Read what this host says of itself, for remedies."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Final

from skillrun.sandbox.linux.remedies import HostFacts

_SYSCTL: Final = Path("/proc/sys")
_CONTAINERS: Final = {"/.dockerenv": "Docker", "/run/.containerenv": "Podman"}


def host_facts() -> HostFacts:
    """Read the settings that decide about namespaces and Landlock; what can't be read is None."""
    container = next((name for path, name in _CONTAINERS.items() if Path(path).exists()), None)
    modules = _text(Path("/sys/kernel/security/lsm"))
    return HostFacts(
        release=os.uname().release,
        python=str(Path(sys.executable).resolve()),
        userns_limit=_number(_SYSCTL / "user/max_user_namespaces"),
        userns_allowed=_number(_SYSCTL / "kernel/unprivileged_userns_clone"),
        apparmor_userns=_number(_SYSCTL / "kernel/apparmor_restrict_unprivileged_userns"),
        modules=modules,
        container=container,
        gvisor="gVisor" in (_text(Path("/proc/version")) or ""),
    )


def _text(path: Path) -> str | None:
    """Return a setting as text."""
    with contextlib.suppress(OSError):
        return path.read_text(encoding="ascii", errors="replace").strip()
    return None


def _number(path: Path) -> int | None:
    """Return a setting as a number."""
    with contextlib.suppress(ValueError):
        return int(_text(path) or "")
    return None
