"""Values: what an expression of a Python script stands for, as far as its text alone tells."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_DEPTH: Final = 25
"""Steps from an expression to what it stands for; past this nothing is known, and no stack is used up."""
HOME: Final = "~"
SKILL: Final = "${skill}"
SCRATCH: Final = "${scratch}"
_SAME: Final = frozenset({"resolve", "absolute", "expanduser", "as_posix", "strip"})
_WRAPPERS: Final = frozenset((
    "pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath", "str", "os.fspath", "os.path.abspath", "os.path.realpath",
    "os.path.expanduser", "os.path.expandvars", "os.path.join", "os.path.normpath", "urllib.request.Request",
))  # fmt: skip
_JOINS: Final = frozenset({"pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath", "os.path.join"})
_FIXED: Final = {"pathlib.Path": ".", "pathlib.Path.home": HOME, "pathlib.Path.cwd": ".", "os.getcwd": "."}
_SCRATCHES: Final = ("tempfile.",)


@dataclass(frozen=True, slots=True)
class Text:
    """A text; `exact` is false when something unknown follows the known beginning."""

    known: str
    exact: bool = True


@dataclass(slots=True)
class Names:
    """What the names of one file stand for: imports, and what is assigned exactly once. `file` is the script's own path."""

    file: str = f"{SKILL}/scripts/script"
    imports: dict[str, str] = field(default_factory=dict)
    values: dict[str, ast.expr | None] = field(default_factory=dict)

    def assign(self, name: str, value: ast.expr | None) -> None:
        """Note an assignment; a second one, or one that is a parameter or a loop's, makes the name unknown."""
        self.values[name] = None if name in self.values else value

    def dotted(self, node: ast.expr) -> str | None:
        """Return the full dotted name that an expression is, imports followed; None when it is no name."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        first = self.imports.get(node.id)
        if first is None:
            if node.id in self.values:
                return None
            first = node.id
        return ".".join((first, *reversed(parts)))

    def text(self, node: ast.expr | None, depth: int = 0) -> Text | None:
        """Return the text that an expression stands for, a path in the spelling of a request."""
        reader = _READERS.get(type(node))
        return None if reader is None or depth > _DEPTH else reader(self, node, depth)

    def of_constant(self, node: ast.Constant, depth: int) -> Text | None:  # noqa: ARG002 - the shape of every reader
        """Return a literal text."""
        return Text(node.value) if isinstance(node.value, str) else None

    def of_formatted(self, node: ast.FormattedValue, depth: int) -> Text | None:
        """Return what stands in the braces of an f-string."""
        return self.text(node.value, depth + 1) if node.format_spec is None else None

    def of_name(self, node: ast.Name, depth: int) -> Text | None:
        """Follow a name to what it was given, once in the file."""
        if node.id == "__file__":
            return Text(self.file)
        return self.text(self.values.get(node.id), depth + 1)

    def of_joined(self, node: ast.JoinedStr, depth: int) -> Text | None:
        """Join the parts of an f-string up to the first that is not known."""
        known = ""
        for part in node.values:
            text = self.text(part, depth + 1)
            if text is None:
                return Text(known, exact=False) if known else None
            known += text.known
            if not text.exact:
                return Text(known, exact=False)
        return Text(known)

    def of_operation(self, node: ast.BinOp, depth: int) -> Text | None:
        """Join texts that are added, and paths that are divided."""
        left = self.text(node.left, depth + 1)
        if left is None or not isinstance(node.op, ast.Add | ast.Div):
            return None
        right = self.text(node.right, depth + 1)
        return _path(left, right) if isinstance(node.op, ast.Div) else _sum(left, right)

    def of_call(self, node: ast.Call, depth: int) -> Text | None:
        """Understand calls that make or take apart a path."""
        name = self.dotted(node.func)
        if name in _FIXED and not node.args:
            return Text(_FIXED[name])
        if name in _WRAPPERS and node.args:
            parts = node.args if name in _JOINS else node.args[:1]
            return self._path_of(parts, depth)
        if name == "os.path.dirname" and node.args:
            return _parent(self.text(node.args[0], depth + 1))
        if name in {"os.environ.get", "os.getenv"} and node.args:
            return Text(HOME) if self.text(node.args[0], depth + 1) == Text("HOME") else None
        if name is not None and name.startswith(_SCRATCHES):
            return Text(SCRATCH, exact=False)
        return self._method(node.func, node, depth) if isinstance(node.func, ast.Attribute) else None

    def _path_of(self, parts: list[ast.expr], depth: int) -> Text | None:
        found = self.text(parts[0], depth + 1)
        for part in parts[1:]:
            found = None if found is None else _path(found, self.text(part, depth + 1))
        return found

    def _method(self, method: ast.Attribute, node: ast.Call, depth: int) -> Text | None:
        if method.attr in _SAME:
            return self.text(method.value, depth + 1)
        if method.attr == "joinpath":
            return self._path_of([method.value, *node.args], depth)
        return None

    def of_attribute(self, node: ast.Attribute, depth: int) -> Text | None:
        """Understand `x.parent`."""
        return _parent(self.text(node.value, depth + 1)) if node.attr == "parent" else None

    def of_subscript(self, node: ast.Subscript, depth: int) -> Text | None:
        """Understand `x.parents[N]` and `os.environ["HOME"]`."""
        index = node.slice
        if isinstance(node.value, ast.Attribute) and node.value.attr == "parents":
            found = self.text(node.value.value, depth + 1)
            if isinstance(index, ast.Constant) and isinstance(index.value, int) and 0 <= index.value < _DEPTH:
                for _ in range(index.value + 1):
                    found = _parent(found)
                return found
            return None
        if (
            self.dotted(node.value) == "os.environ"
            and isinstance(index, ast.Constant)
            and index.value == "HOME"
        ):
            return Text(HOME)
        return None


_READERS: Final[dict[type | None, Callable[[Names, Any, int], Text | None]]] = {
    ast.Constant: Names.of_constant,
    ast.Name: Names.of_name,
    ast.JoinedStr: Names.of_joined,
    ast.FormattedValue: Names.of_formatted,
    ast.BinOp: Names.of_operation,
    ast.Call: Names.of_call,
    ast.Attribute: Names.of_attribute,
    ast.Subscript: Names.of_subscript,
}


def _path(left: Text, right: Text | None) -> Text:
    if not left.exact:
        return left
    if right is None:
        return Text(f"{left.known.rstrip('/')}/", exact=False)
    if right.known.startswith(("/", "~")):
        return right
    return Text(f"{left.known.rstrip('/')}/{right.known}", right.exact)


def _sum(left: Text, right: Text | None) -> Text:
    if right is None or not left.exact:
        return Text(left.known, exact=False)
    return Text(left.known + right.known, right.exact)


def _parent(text: Text | None) -> Text | None:
    """Go one folder up; None where nobody knows what lies there: above the skill, the home, the working folder."""
    if text is None or not text.exact:
        return None
    known = text.known.rstrip("/")
    if known in {HOME, SKILL, ".", ""}:
        return None
    head, slash, _ = known.rpartition("/")
    return Text(head or ("/" if slash else "."))
