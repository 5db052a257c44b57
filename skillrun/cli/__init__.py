"""The command line: one command a file, no decisions. Loaded lazily, so that `--version` costs next to nothing."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    # The signals first: from here on Ctrl-C is an exit code and never a traceback.
    from skillrun.cli.interrupts import Interrupts, Stopped  # noqa: PLC0415 - `import skillrun.cli` alone does nothing

    interrupts = Interrupts()
    interrupts.install()
    try:
        from skillrun.cli.program import execute  # noqa: PLC0415 - click is loaded when signals are already handled

        return execute(arguments, interrupts)
    except Stopped as stopped:
        return stopped.exit_code
    finally:
        interrupts.retire()
        if arguments is None:
            # The program ends here, and Python would look through all that was loaded for cycles: a tenth of a short run.
            gc.freeze()
