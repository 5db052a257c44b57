"""One `add_argument` as a parameter: the JSON Schema of its value and the words it becomes."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from skillrun.tools.infer.follow import Class, Instance
from skillrun.tools.infer.values import Symbol
from skillrun.tools.interface import Form, Parameter

if TYPE_CHECKING:
    from collections.abc import Mapping

SUPPRESS: Final = "==SUPPRESS=="  # argparse.SUPPRESS
REMAINDER: Final = "..."  # argparse.REMAINDER
_MOST_CHOICES: Final = 250  # of an enumeration in a schema; facts: models refuse long ones
_CONSTANTS: Final = {
    "argparse.SUPPRESS": SUPPRESS, "argparse.REMAINDER": REMAINDER, "argparse.OPTIONAL": "?",
    "argparse.ZERO_OR_MORE": "*", "argparse.ONE_OR_MORE": "+",
}  # fmt: skip
_LONGEST_SHOWN: Final = 1_000  # characters of a default in the help of an option
_SWITCHES: Final = frozenset({"store_true", "store_false", "store_const", "append_const"})
_SILENT: Final = frozenset({"help", "version"})
_TYPES: Final[dict[str, dict[str, Any]]] = {
    "int": {"type": "integer"}, "float": {"type": "number"}, "complex": {"type": "string"},
    "bool": {"type": "boolean"},
}  # fmt: skip
_OUT = re.compile(r"[^A-Za-z0-9_]+")


@dataclass(frozen=True, slots=True)
class Option:
    """An `add_argument` as it was written: its flags or its name, and its keywords as far as they can be read."""

    flags: tuple[str, ...]
    keywords: Mapping[str, Any]
    exclusive: bool = False

    @property
    def optional(self) -> bool:
        """Whether it is given by a flag."""
        return bool(self.flags) and self.flags[0].startswith("-")

    @property
    def dest(self) -> str:
        """The name of the value in the script."""
        named = self.keywords.get("dest")
        if isinstance(named, str):
            return named
        long = [flag for flag in self.flags if flag.startswith("--")] or list(self.flags)
        return (long[0] if long else "").lstrip("-").replace("-", "_")

    def word(self, key: str) -> Any:
        """Return a keyword, the constants of argparse as they are written."""
        found = self.keywords.get(key)
        return _CONSTANTS.get(found.dotted, found) if isinstance(found, Symbol) else found

    def with_default(self, defaults: Mapping[str, Any]) -> Option:
        """Return it with the default that `set_defaults` gives."""
        return (
            replace(self, keywords={**self.keywords, "default": defaults[self.dest]})
            if self.dest in defaults
            else self
        )


def parameter(option: Option, *, level: int = 0) -> Parameter | None:
    """Return the parameter of an option; None for `--help`, `--version` and what is hidden on purpose."""
    action = option.word("action")
    if not isinstance(action, str | Symbol | Class):
        action = None
    if (isinstance(action, str) and action in _SILENT) or option.word("help") == SUPPRESS:
        return None
    if isinstance(action, Symbol | Class):
        name = action.dotted if isinstance(action, Symbol) else action.node.name
        action = "boolean" if name.endswith("BooleanOptionalAction") else "own"
    nargs = option.word("nargs")
    if not isinstance(nargs, str | int):
        nargs = None
    form, fixed = _form(action, nargs, optional=option.optional)
    flag = _flag(option) if option.optional else None
    item = _item(option)
    schema = _schema(form, item, nargs, fixed)
    text = _help(option)
    if text:
        schema["description"] = text
    default = option.word("default")
    if _plain(default) and action != "append" and default != SUPPRESS:
        schema |= _default(form, default, action)
    off = f"--no-{flag[2:]}" if action == "boolean" and flag is not None and flag.startswith("--") else None
    return Parameter(
        name=property_name(flag or option.dest),
        schema=schema,
        form=form,
        flag=flag,
        required=_required(option, nargs),
        off=off,
        level=level,
        fixed=fixed,
    )


def _required(option: Option, nargs: Any) -> bool:
    if option.optional:
        return option.word("required") is True
    return not (option.exclusive or nargs in {"?", "*", REMAINDER})


def property_name(flag: str) -> str:
    """Return a flag as the name of a property: letters, digits and `_`, none of the digits first, at most 64."""
    name = _OUT.sub("_", flag.lstrip("-")).strip("_")[:64]
    return f"_{name}" if not name or name[0].isdigit() else name


def _flag(option: Option) -> str:
    return next((flag for flag in option.flags if flag.startswith("--")), option.flags[0])


def _form(action: Any, nargs: Any, *, optional: bool) -> tuple[Form, int | None]:
    fixed = nargs if isinstance(nargs, int) and not isinstance(nargs, bool) else None
    if action in _SWITCHES or action == "boolean" or fixed == 0:
        return Form.SWITCH, None
    if action == "count":
        return Form.COUNT, None
    several = fixed is not None or nargs in {"*", "+", REMAINDER}
    if action == "append" and optional:
        return (Form.REPEATED_LISTS, fixed) if several else (Form.REPEAT, None)
    if nargs == REMAINDER:
        return Form.REST, None
    if several:
        return Form.LIST, fixed
    return (Form.BARE if nargs == "?" and optional else Form.VALUE), None


def _item(option: Option) -> dict[str, Any]:
    """Return the schema of one value."""
    kind = option.word("type")
    schema: dict[str, Any] = {"type": "string"}
    if isinstance(kind, Symbol):
        schema = dict(_TYPES.get(kind.dotted, schema))
    choices = option.word("choices")
    known = isinstance(choices, list | tuple | dict | range | set) and 0 < len(choices) <= _MOST_CHOICES
    if not known:
        return schema
    names = [choice.attributes.get("value") if isinstance(choice, Instance) else choice for choice in choices]
    if all(isinstance(name, str) for name in names) or (
        schema["type"] in {"integer", "number"} and all(type(name) in {int, float} for name in names)
    ):
        schema["enum"] = list(dict.fromkeys(names))
    return schema


def _schema(form: Form, item: dict[str, Any], nargs: Any, fixed: int | None) -> dict[str, Any]:
    match form:
        case Form.SWITCH:
            return {"type": "boolean"}
        case Form.COUNT:
            return {"type": "integer", "minimum": 0, "maximum": 20}
        case Form.BARE:
            return (
                {"anyOf": [item, {"type": "boolean"}]}
                if item.get("type") != "boolean"
                else {"type": "boolean"}
            )
        case Form.REPEAT | Form.REST:
            return {"type": "array", "items": item if form is Form.REPEAT else {"type": "string"}}
        case Form.LIST | Form.REPEATED_LISTS:
            inner: dict[str, Any] = {"type": "array", "items": item}
            if fixed is not None:
                inner |= {"minItems": fixed, "maxItems": fixed}
            elif nargs == "+":
                inner["minItems"] = 1
            return inner if form is Form.LIST else {"type": "array", "items": inner}
        case _:
            return dict(item)


def _plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return len(value) <= _MOST_CHOICES and all(isinstance(item, str | int | float) for item in value)
    return isinstance(value, str | int | float)


def _default(form: Form, default: Any, action: Any) -> dict[str, Any]:
    """Return `default` where the value that stands for it is a fitting one; `store_false` turns it round."""
    if form is Form.SWITCH:
        return {"default": default} if action == "boolean" and isinstance(default, bool) else {}
    if form is Form.LIST:
        return {"default": list(default)} if isinstance(default, list | tuple) else {}
    if form in {Form.VALUE, Form.BARE} and isinstance(default, str | int | float):
        return {"default": default}
    return {}


def _shown(value: Any) -> str:
    try:
        if isinstance(value, list | tuple):
            value = type(value)(one[:_LONGEST_SHOWN] if isinstance(one, str) else one for one in value)
        return str(value)[:_LONGEST_SHOWN]
    except ValueError:  # more digits than Python writes out
        return ""


def _help(option: Option) -> str:
    """Return the help of an option with what argparse fills in filled in."""
    text = option.word("help")
    if not isinstance(text, str):
        return ""
    default = option.word("default")
    if "%(default)" in text:
        shown = _shown(default) if _plain(default) else ""
        text = re.sub(r"%\(default\)\w", lambda _: shown, text)
    text = re.sub(r"%\((\w+)\)\w", lambda match: match[1], text).replace("%%", "%")
    return " ".join(text.split())
