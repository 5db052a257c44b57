"""Declared: the interfaces that a skill's `scripts` entry gives, in place of what was inferred or on top of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from skillrun.sandbox.policy import Access
from skillrun.tools.interface import Form, Grammar, Interface, Parameter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillrun.permissions.script_entries import DeclaredParameter, ScriptEntry


def declare(entry: ScriptEntry | None, inferred: Sequence[Interface]) -> tuple[Interface, ...]:
    """Return the interfaces of a script: what the entry says, and for what it does not say what was inferred.

    An entry with `subcommands` names those that are offered; one with `parameters` makes the script one tool.
    """
    if entry is None:
        return tuple(inferred)
    if entry.subcommands:
        return tuple(_subcommand(one, inferred) for one in entry.subcommands)
    if entry.parameters is not None:
        grammar = inferred[0].grammar if inferred else Grammar.PLAIN
        return (_declared(entry, grammar, ()),)
    return tuple(inferred)


def _subcommand(entry: ScriptEntry, inferred: Sequence[Interface]) -> Interface:
    same = next((one for one in inferred if one.subcommand and one.subcommand[-1] == entry.name), None)
    grammar = inferred[0].grammar if inferred else Grammar.PLAIN
    if entry.parameters is None and same is not None:
        return replace(same, description=entry.description or same.description)
    path = same.subcommand if same is not None else (entry.name,)
    return _declared(entry, grammar, path)


def _declared(entry: ScriptEntry, grammar: Grammar, path: tuple[str, ...]) -> Interface:
    parameters = entry.parameters or ()
    positions = sorted(
        (one for one in parameters if isinstance(one.arg, int)), key=lambda one: int(one.arg or 0)
    )
    others = [one for one in parameters if not isinstance(one.arg, int)]
    made = tuple(parameter(one, level=len(path)) for one in (*positions, *others))
    return Interface(made, grammar=grammar, description=entry.description, subcommand=path, source="declared")


def parameter(declared: DeclaredParameter, *, level: int = 0) -> Parameter:
    """Return the parameter of a declaration."""
    flag = declared.arg if isinstance(declared.arg, str) and declared.arg != "stdin" else None
    if declared.arg is None:
        flag = f"--{declared.name.replace('_', '-')}"
    return Parameter(
        name=declared.name,
        schema=declared.schema,
        form=_form(declared, flag),
        flag=flag.removesuffix("=") if flag is not None else None,
        required=declared.required,
        off=declared.false_arg,
        level=level,
        joined=flag is not None and flag.endswith("="),
        access=None if declared.access is None else Access(declared.access),
    )


def _form(declared: DeclaredParameter, flag: str | None) -> Form:
    if declared.arg == "stdin":
        return Form.STDIN
    kind = declared.schema.get("type")
    if kind == "boolean" and flag is not None:
        return Form.SWITCH
    if kind == "array":
        return Form.REPEAT if declared.repeat and flag is not None else Form.LIST
    return Form.VALUE
