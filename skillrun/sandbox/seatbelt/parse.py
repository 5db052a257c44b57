"""Parse: from a profile's text and its parameters to its rules, on any platform."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.problem import Problem, error
from skillrun.sandbox.seatbelt.forms import Builder
from skillrun.sandbox.seatbelt.model import Profile
from skillrun.sandbox.seatbelt.source import OWN_LIMITS, Fault, Source
from skillrun.sandbox.seatbelt.syntax import read

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from skillrun.sandbox.seatbelt.scheme import Machine
    from skillrun.sandbox.seatbelt.syntax import Node

_MOST_FAULTS = 20  # told of one profile


def parse(text: str, parameters: Mapping[str, str] | None = None, *, path: Path | None = None) -> Profile:
    """Read a profile and evaluate it with these parameters. Never raises for what a text holds.

    A form that is wrong is a fault of the profile, and the forms behind it are read all the same: on a Mac
    nothing would be loaded, but whoever audits the text wants to see the rest.
    """
    source = Source(text, path)
    try:
        nodes = read(source)
    except Fault as fault:
        return Profile(source, faults=(_problem(source, fault),))
    builder = Builder(parameters or {})
    machine = builder.machine()
    faults: list[Problem] = []
    for node in nodes:
        found = _evaluated(machine, node)
        builder.doubt(machine, node)
        if found is not None:
            faults.append(_problem(source, found))
        if found is not None and (found.rule == "no-version" or len(faults) >= _MOST_FAULTS):
            break
    if not builder.version and not any(fault.rule.endswith("-version") for fault in faults):
        faults.append(error("no-version", "no version specified: `(version 1)` comes first"))
    return Profile(
        source,
        rules=tuple(builder.rules),
        imports=tuple(builder.imports),
        faults=tuple(faults),
        doubts=tuple(builder.doubts),
        parameters=builder.parameters,
    )


def _evaluated(machine: Machine, node: Node) -> Fault | None:
    """Evaluate one form, and return what is wrong with it."""
    try:
        machine.value(node, machine.top)
    except Fault as fault:
        return Fault(fault.rule, fault.message, fault.span or node.span)
    except RecursionError:  # values nested in values
        return Fault("too-deep", "values nest too deeply", node.span)
    return None


def _problem(source: Source, fault: Fault) -> Problem:
    at = None if fault.span is None else source.at(fault.span)
    if fault.rule in OWN_LIMITS:
        advice = "that is a limit of this reader: a Mac may take the profile, and nothing is known of it here"
    else:
        advice = "a Mac refuses the whole profile: nothing would start"
    return error(fault.rule, fault.message, at=at, help=advice)
