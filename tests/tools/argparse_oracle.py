"""What argparse itself says about scripts: the oracle for the inference, which shares no code with it.

Run inside `skillrun run`, as a script of a throwaway skill: each target is executed in a child up to the moment
when it parses its arguments, and the parser's own actions are read there. Modules that are missing are made up.

    oracle.py FILE...      one JSON line a file: {"file", "commands": [...] | null, "why"}
"""

from __future__ import annotations

import argparse
import importlib.abc
import importlib.machinery
import json
import os
import runpy
import signal
import sys
import types
from unittest import mock

SECONDS = 10


class Reached(BaseException):
    """The script asked its parser to parse."""

    def __init__(self, parser):
        self.parser = parser


class MadeUp(types.ModuleType):
    """A module that is not installed; whatever is taken from it is a mock."""

    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return mock.MagicMock(name=name)


class MakeUp(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds, after everything else, every module that nobody has."""

    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return MadeUp(spec.name)

    def exec_module(self, module):
        pass


def kind(action):
    """Return the JSON type of one value."""
    return {int: "integer", float: "number", bool: "boolean"}.get(action.type, "string")


def enum(action):
    """Return the choices as a list, None for none, too many, or what is no text or number."""
    try:
        values = [getattr(one, "value", one) for one in action.choices or ()]
    except Exception:
        return None
    if not values or len(values) > 250:
        return None
    if all(isinstance(one, str) for one in values):
        return values
    if kind(action) in ("integer", "number") and all(type(one) in (int, float) for one in values):
        return values
    return None


def describe(action, exclusive):
    """Return one action as a record that can be compared."""
    name = type(action).__name__
    nargs = action.nargs
    flag = next((one for one in action.option_strings if one.startswith("--")), None)
    flag = flag or (action.option_strings[0] if action.option_strings else None)
    record = {
        "flag": flag,
        "dest": action.dest if flag is None else None,
        "type": kind(action),
        "enum": enum(action),
    }
    record["required"] = bool(action.required) if flag else nargs not in ("?", "*", "...") and not exclusive
    if (
        name
        in (
            "_StoreTrueAction",
            "_StoreFalseAction",
            "_StoreConstAction",
            "_AppendConstAction",
            "BooleanOptionalAction",
        )
        or nargs == 0
    ):
        record |= {"shape": "switch", "type": "boolean", "enum": None}
        if name == "_CountAction":
            record |= {"shape": "count", "type": "integer"}
    elif nargs in ("*", "+", "...") or isinstance(nargs, int):
        record["shape"] = "lists" if name == "_AppendAction" and flag else "list"
        record["items"] = nargs if isinstance(nargs, int) else None
        if nargs == "...":
            record |= {"type": "string", "enum": None}
    elif name == "_AppendAction" and flag:
        record["shape"] = "list"
        record["items"] = None
    else:
        record["shape"] = "one"
        if isinstance(action.default, os.PathLike):
            action.default = os.fspath(action.default)
        plain = isinstance(action.default, (str, int, float)) and action.default != argparse.SUPPRESS
        record["default"] = action.default if plain else None
    return record


def commands(parser, path=(), above=()):
    """Yield every command of a parser: its path and its records."""
    exclusive = {id(one) for group in parser._mutually_exclusive_groups for one in group._group_actions}
    own, sub = [], None
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            sub = action
        elif (
            type(action).__name__ not in ("_HelpAction", "_VersionAction")
            and action.help != argparse.SUPPRESS
        ):
            own.append(describe(action, id(action) in exclusive))
    if sub is None or not sub.choices:
        yield {"path": list(path), "parameters": [*above, *own]}
        return
    seen = set()
    for name, inner in sub.choices.items():
        if id(inner) not in seen:  # the others are aliases
            seen.add(id(inner))
            yield from commands(inner, (*path, name), (*above, *own))


def reach(path):
    """Execute a script until it parses; return its commands."""

    def parse(self, *_, **__):
        raise Reached(self)

    for name in ("parse_args", "parse_known_args", "parse_intermixed_args", "parse_known_intermixed_args"):
        setattr(argparse.ArgumentParser, name, parse)
    sys.meta_path.append(MakeUp())
    sys.argv = [path]
    sys.path.insert(0, os.path.dirname(path))
    try:
        runpy.run_path(path, run_name="__main__")
    except Reached as reached:
        return list(commands(reached.parser))
    raise RuntimeError("it ended without parsing")


def main():
    """Answer for every file, each in a child."""
    for path in sys.argv[1:]:
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            null = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(null, number)
            signal.alarm(SECONDS)
            try:
                answer = {"commands": reach(path), "why": None}
            except BaseException as wrong:
                answer = {"commands": None, "why": f"{type(wrong).__name__}: {wrong}"[:200]}
            try:
                words = json.dumps(answer, default=str).encode()
            except Exception as wrong:
                words = json.dumps({"commands": None, "why": f"not JSON: {wrong}"}).encode()
            while words:
                words = words[os.write(writing, words) :]
            os._exit(0)
        os.close(writing)
        words = b""
        while chunk := os.read(reading, 1 << 16):
            words += chunk
        os.close(reading)
        os.waitpid(pid, 0)
        answer = json.loads(words) if words else {"commands": None, "why": "it was killed"}
        print(json.dumps({"file": path, **answer}), flush=True)


if __name__ == "__main__":
    main()
