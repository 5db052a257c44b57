"""Log: the library's messages for debugging, through the logger `skillrun` and nowhere else."""

from __future__ import annotations

import sys
from typing import Any

_LOGGER = "skillrun"


def debug(message: str, **facts: Any) -> None:
    """Tell one step, with facts about it; secrets are taken out, and texts are written as Python literals.

    Never called with arguments, variables, input or output of a script. Costs nothing where nobody has
    imported `logging`: nobody can be listening then, and importing it would be a tenth of a command's start.
    """
    logging = sys.modules.get("logging")
    if logging is None:
        return
    logger = logging.getLogger(_LOGGER)
    if not logger.isEnabledFor(logging.DEBUG):
        return
    from skillrun.redact import Redactor  # noqa: PLC0415 - only for who listens

    # `ascii` leaves no control and no bidi character, so that no skill can write a line of its own into a log.
    told = " ".join(f"{name}={str(fact)!a}" for name, fact in facts.items())
    logger.debug("%s", Redactor().text(f"{message} {told}".rstrip()))
