"""Platform: who starts runs here."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from skillrun.launch.launcher import Launcher
    from skillrun.launch.session import Session


def launcher(temporary: Path, *, system: str = sys.platform) -> Launcher | Session:
    """Return the launcher of this platform. The other one is not even imported: each needs calls of its own system."""
    if system == "linux":
        from skillrun.launch.launcher import Launcher  # noqa: PLC0415 - see above

        return Launcher(temporary=temporary)
    from skillrun.launch.session import Session  # noqa: PLC0415 - see above

    return Session(temporary=temporary)
