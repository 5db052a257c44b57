"""Selection: which tools are offered in one turn. A level names some, and can only ever name fewer than the one above."""

from __future__ import annotations

import difflib
import enum
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from skillrun.errors import UsageError
from skillrun.problem import error
from skillrun.tools.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Select(enum.Enum):
    """A choice that is no list of names."""

    INHERIT = "inherit"
    NONE = "none"


INHERIT: Final = Select.INHERIT
"""What the level above offers; None says the same."""
_LONGEST: Final = 100
NONE: Final = Select.NONE
"""No tool at all; so does an empty list."""
Choice: TypeAlias = "Select | Iterable[str] | None"


def select(tools: Sequence[Tool], choice: Choice) -> tuple[Tool, ...]:
    """Return the tools that a choice leaves, in their own order. Raises UsageError for what names none of them."""
    if choice is None or choice is INHERIT:
        return tuple(tools)
    if choice is NONE:
        return ()
    if isinstance(choice, str | bytes):
        raise _wrong(f"{choice!r} is one text", f"write a list: [{choice!r}]")
    names = list(choice)
    for name in names:
        _check(name, tools)
    return tuple(tool for tool in tools if tool.full_name in names)


def similar(name: str, tools: Iterable[Tool], *, most: int = 3) -> list[str]:
    """Return up to three names that are like one that does not exist."""
    name = name[:_LONGEST]  # the rest of a name that is longer than any is like nothing
    known = [tool.full_name for tool in tools]
    bare = {tool.full_name.rsplit("__", 1)[-1]: tool.full_name for tool in tools}
    near = difflib.get_close_matches(name, known, n=most, cutoff=0.5)
    # Models drop the front of a name (`extract` for `pdf-tools__extract`), and then the rest is what counts.
    near += [
        bare[one]
        for one in difflib.get_close_matches(name, bare, n=most, cutoff=0.6)
        if bare[one] not in near
    ]
    return near[:most]


def _check(name: Any, tools: Sequence[Tool]) -> None:
    if isinstance(name, Tool) or (isinstance(name, type) and issubclass(name, Tool)):
        shown = name.full_name if isinstance(name, Tool) else name.model_name()
        message = f"a choice names tools, and `{name.__class__.__name__ if isinstance(name, Tool) else name.__name__}` is one"
        raise _wrong(message, f"give it to Toolbox([...]), and name it here: {shown!r}")
    if not isinstance(name, str):
        raise _wrong(f"{name!r} is no name of a tool", "write the names as texts")
    if all(tool.full_name != name for tool in tools):
        near = similar(name, tools)
        advice = (
            "did you mean " + " or ".join(f"`{one}`" for one in near) + "?"
            if near
            else "no such tool is offered here"
        )
        raise _wrong(f"there is no tool `{name}`", advice)


def _wrong(message: str, advice: str) -> UsageError:
    return UsageError(error("tool-selection", message, help=advice))
