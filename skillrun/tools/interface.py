"""Interface: what a script takes, as a JSON Schema for the model and as words for its command line."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillrun.sandbox.policy import Access


MOST_OPTIONS: Final = 500
"""Parameters of one command that are read; public scripts have up to 60."""
MOST_INTERFACES: Final = 128
"""Sub-commands of one script that are read: what a model API takes at most."""


class Grammar(enum.Enum):
    """Whose rules the words of a command line follow; each has its own way to say a value that begins with a dash."""

    ARGPARSE = "argparse"
    CLICK = "click"
    NODE = "util.parseArgs"
    PLAIN = "plain"  # nobody knows: positions first, then each flag and its value as two words


class Form(enum.Enum):
    """How the value of a parameter becomes words."""

    VALUE = "value"  # FLAG=VALUE, or the value alone in its position
    SWITCH = "switch"  # FLAG when true
    COUNT = "count"  # FLAG as often as the number says
    BARE = "bare"  # FLAG for true, FLAG=VALUE for a value
    LIST = "list"  # FLAG and then every item
    REPEAT = "repeat"  # FLAG=ITEM for every item
    REPEATED_LISTS = "repeated lists"  # FLAG and its items, for every inner list
    REST = "rest"  # everything that is left, whatever it looks like
    STDIN = "stdin"  # not a word at all


@dataclass(frozen=True, slots=True)
class Parameter:
    """One property of a tool's schema and the words it becomes.

    `flag` is None for a position; positions stand in the order of the parameters. `off` is the flag for
    false. `level` counts the sub-commands that come before it. `fixed` is the number of words that a position or list takes, None for any.
    `joined` writes FLAG=VALUE where the grammar is plain. `access` is what the script may do with the file that the value names.
    """

    name: str
    schema: Mapping[str, Any]
    form: Form = Form.VALUE
    flag: str | None = None
    required: bool = False
    off: str | None = None
    level: int = 0
    fixed: int | None = None
    joined: bool = False
    access: Access | None = None


@dataclass(frozen=True, slots=True)
class Interface:
    """What a script, or one of its sub-commands, takes.

    `complete` is false when a part could not be read; then `args` takes more words as they are.
    `from_file` are the first characters that make the script read words from a file.
    """

    parameters: tuple[Parameter, ...] = ()
    grammar: Grammar = Grammar.PLAIN
    description: str | None = None
    subcommand: tuple[str, ...] = ()
    complete: bool = True
    from_file: str = ""
    source: str = "none"  # what it was read from: argparse, click, typer, util.parseArgs, declared, none

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema (2020-12) of the arguments; an object that takes nothing else."""
        required = [parameter.name for parameter in self.parameters if parameter.required]
        return {
            "type": "object",
            "properties": {parameter.name: dict(parameter.schema) for parameter in self.parameters},
            "required": required,
            "additionalProperties": False,
        }


ARGS = Parameter(
    "args",
    {"type": "array", "items": {"type": "string"}, "description": "Words of the command line, one an item."},
    form=Form.REST,
)
STDIN = Parameter(
    "stdin", {"type": "string", "description": "Text for the script's standard input."}, form=Form.STDIN
)
UNREAD = Interface((ARGS, STDIN))
"""The interface of a script that says nothing about itself."""
