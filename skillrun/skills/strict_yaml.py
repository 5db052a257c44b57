"""Strict YAML: a text becomes the tree of `node.py`, or the reasons why it can't be read.

Read by the YAML 1.2 core rules: `yes` and `2024-01-01` are strings. No tags, no key twice in one map,
only scalars as keys, bounded aliases and depth. libyaml does the scanning and gives the places; what it
would read by YAML 1.1 (three Unicode line breaks, a lone CR) is refused before it sees it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from skillrun.errors import SkillrunError
from skillrun.problem import At, Problem, error, warning
from skillrun.skills.node import Entry, Items, Mapping, Scalar

if TYPE_CHECKING:
    from pathlib import Path

    from skillrun.skills.node import Node

SIZE_LIMIT: Final = 1 << 20
"""Bytes of a file that is read at all (DESIGN 6); the largest real front matter is 5 KB."""
DEPTH_LIMIT: Final = 64
"""Maps and lists inside each other; the deepest real front matter has 7."""
ALIAS_LIMIT: Final = 10_000
"""Nodes that all aliases of one text may stand for: every reader walks the tree as if they were written out."""
PROBLEM_LIMIT: Final = 20
"""Problems told about one text; more would only bury the first."""
DIGIT_LIMIT: Final = 400
"""Characters of a number. A double has 309 digits at most, and int() of a long text is quadratic."""

# What YAML 1.2 calls non-printable, and the characters that break a line for one YAML and not for the other:
# a key behind such a break would exist for some readers only.
_UNREADABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")
_NUMBER_START = frozenset("+-.0123456789")
_MEANINGFUL = frozenset(
    ("", *"~nNtTfF", *_NUMBER_START)
)  # first characters of plain scalars that are no strings
_INTEGER = re.compile(r"[-+]?[0-9]+\Z")
_RADIX = re.compile(r"0o[0-7]+\Z|0x[0-9a-fA-F]+\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_INFINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z")
_WORDS: Final[dict[str, bool | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


class YamlProblem(SkillrunError):  # noqa: N818 - it carries problems, and that is the word for them here
    """A text that is not strict YAML; `problems` says everything that is wrong with it, the worst first."""


# Every value has a place. The init of a frozen dataclass sets each field through `object.__setattr__`; writing the
# slots directly takes half the time, which `list` over thousands of skills feels.
_new_at = At.__new__
_at_path, _at_line, _at_column, _at_end, _at_preset, _at_flag, _at_excerpt = (
    At.__dict__[name].__set__
    for name in ("path", "line", "column", "end_column", "preset", "flag", "excerpt")
)


def _place(path: Path, line: int, column: int, end_column: int, excerpt: str) -> At:
    at = _new_at(At)
    _at_path(at, path)
    _at_line(at, line)
    _at_column(at, column)
    _at_end(at, end_column)
    _at_preset(at, None)
    _at_flag(at, None)
    _at_excerpt(at, excerpt)
    return at


def decode_text(data: bytes, *, path: Path, rule: str) -> str:
    r"""Turn the bytes of a file into text: UTF-8, one byte order mark dropped, CRLF read as LF.

    Raises YamlProblem `<rule>-too-large` or `<rule>-not-utf8`, the latter with line and column.
    """
    if len(data) > SIZE_LIMIT:
        message = f"the file is larger than {SIZE_LIMIT // 1024} KiB, so it was not read"
        raise YamlProblem(
            error(f"{rule}-too-large", message, at=At(path), help="move long text to another file")
        )
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as wrong:
        before = data[: wrong.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8")) + 1
        message = f"the file is not UTF-8 (byte 0x{data[wrong.start]:02x})"
        at = At(path, line, column, column + 1)
        raise YamlProblem(error(f"{rule}-not-utf8", message, at=at, help="save the file as UTF-8")) from None
    text = text.removeprefix("\ufeff")
    return text.replace("\r\n", "\n") if "\r" in text else text


def core_scalar(text: str) -> str | int | float | bool | None:
    """Return what a plain scalar means by the YAML 1.2 core rules; a number that is too long stays text."""
    first = text[:1]
    if first in _NUMBER_START and text:
        if len(text) <= DIGIT_LIMIT:
            if _INTEGER.match(text):
                return int(text)
            if _FLOAT.match(text):
                return float(text)
            if _RADIX.match(text):
                return int(text, 0)
            if _INFINITE.match(text):
                return float(text.replace(".", "", 1))
        return text
    return _WORDS.get(text, text)


def read_yaml(
    text: str, *, path: Path, first_line: int = 1, rule: str = "yaml", notes: list[Problem] | None = None
) -> Mapping:
    """Read a YAML text, whose first line is line `first_line` of `path`, as one mapping.

    Raises YamlProblem with the rules `<rule>-yaml`, `-control-character`, `-tag`, `-alias`, `-depth`,
    `-number`, `-duplicate-key`, `-key-not-scalar`, `-not-a-mapping` and `-empty` (nothing but
    comments). Warnings about what other readers may refuse go to `notes`.
    """
    tree = _Tree(text, path, first_line, rule)
    root = tree.read()
    if root is None:
        message = "there is nothing in it: no key at all"
        raise YamlProblem(
            error(f"{rule}-empty", message, at=tree.spot(0, 0), help="write `key: value` lines")
        )
    if not isinstance(root, Mapping):
        found = "a list" if isinstance(root, Items) else "a single value"
        message = f"expected `key: value` lines, found {found}"
        raise YamlProblem(error(f"{rule}-not-a-mapping", message, at=root.at, help="is a colon missing?"))
    if notes is not None:
        notes.extend(tree.notes)
    return root


class _Open:
    """A map or list that is being read; `key` is the key whose value comes next."""

    __slots__ = ("anchor", "at", "column", "counted", "found", "height", "key", "keys")

    def __init__(
        self, at: At, anchor: str | None, *, keys: dict[str, At] | None, column: int, counted: int
    ) -> None:
        self.at = at
        self.anchor = anchor
        self.keys = keys  # None for a list
        self.column = column  # of a block collection; -1 inside a flow one, where indentation means nothing
        self.counted = counted
        self.found: list[Any] = []
        self.key: tuple[str, At] | None = None
        self.height = 0


class _Tree:
    """One reading: libyaml's events become nodes, on a stack of our own since a hostile text may nest deep."""

    def __init__(self, text: str, path: Path, first_line: int, rule: str) -> None:
        self.text = text
        self.path = path
        self.first_line = first_line
        self.rule = rule
        self.lines = text.split("\n")
        self.last = max(0, len(self.lines) - (2 if text.endswith("\n") else 1))
        self.stack: list[_Open] = []
        self.root: Node | None = None
        self.anchors: dict[str, tuple[Node, int, int]] = {}  # the node, its size, its height
        self.counted = 0  # nodes so far, those behind aliases included
        self.aliased = 0
        self.problems: list[Problem] = []
        self.notes: list[Problem] = []

    def spot(self, line: int, column: int, end_line: int = -1, end_column: int = 0) -> At:
        """Make an At from places that count from 0 in this text; `end_column` is one past the last character."""
        if (
            line > self.last
        ):  # libyaml puts what is missing at the end behind it: show the last line that has text
            line, column = self.last, len(self.lines[self.last])
        excerpt = self.lines[line]
        end = end_column if end_line == line else len(excerpt)
        if end <= column:
            end = column + 1
        return _place(self.path, self.first_line + line, column + 1, end + 1, excerpt)

    def fail(self, what: str, message: str, at: At, help: str | None = None) -> None:  # noqa: A002 - the word of the JSON shape
        if len(self.problems) < PROBLEM_LIMIT:
            self.problems.append(error(f"{self.rule}-{what}", message, at=at, help=help))

    def stop(self, what: str, message: str, at: At, help: str | None = None) -> YamlProblem:  # noqa: A002 - the word of the JSON shape
        return YamlProblem(error(f"{self.rule}-{what}", message, at=at, help=help), *self.problems)

    def read(self) -> Node | None:
        """Return the root, None when the text holds no node; raise YamlProblem with all that was wrong."""
        import yaml  # noqa: PLC0415 - heavy, and `--version` needs none of it

        self.check_characters()
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(self.text)
        get_event, scalar, scalar_event = loader.get_event, self.scalar, yaml.ScalarEvent
        handlers = {
            yaml.MappingStartEvent: self.open_map,
            yaml.SequenceStartEvent: self.open_list,
            yaml.MappingEndEvent: self.close,
            yaml.SequenceEndEvent: self.close,
            yaml.AliasEvent: self.alias,
            yaml.DocumentStartEvent: self.document,
        }
        try:
            while (event := get_event()) is not None:
                kind = type(event)
                if kind is scalar_event:  # three of four events: worth a path of their own
                    scalar(event)
                elif kind in handlers:
                    handlers[kind](event)
        except yaml.YAMLError as wrong:
            raise self.syntax(wrong) from None
        finally:
            loader.dispose()
        if self.problems:
            raise YamlProblem(*self.problems)
        return self.root

    def check_characters(self) -> None:
        match = _UNREADABLE.search(self.text)
        if match is None:
            return
        line = self.text.count("\n", 0, match.start())
        column = match.start() - (self.text.rfind("\n", 0, match.start()) + 1)
        name = f"U+{ord(match[0]):04X}"
        if match[0] in "\r\x85\u2028\u2029":
            message = f"the character {name} breaks the line for some readers and not for others"
            help_ = "end lines with LF or CRLF"
        else:
            message, help_ = f"the control character {name} can't stand in a text", "take it out"
        raise self.stop("control-character", message, self.spot(line, column), help_)

    def syntax(self, wrong: Exception) -> YamlProblem:
        """Turn libyaml's complaint into a problem at the place it means."""
        mark = getattr(wrong, "problem_mark", None) or getattr(wrong, "context_mark", None)
        what = getattr(wrong, "problem", None) or str(wrong)
        line, column = (mark.line, mark.column) if mark is not None else (0, 0)
        if "nesting depth" in what:  # libyaml looks ahead, past our own limit, and has one too
            return self.stop(
                "depth", f"more than {DEPTH_LIMIT} maps or lists inside each other", self.spot(line, column)
            )
        help_ = None
        if what.startswith("mapping values are not allowed"):
            help_ = "a value with `: ` in it needs quotes around it"
        elif "cannot start any token" in what:
            help_ = "a value that begins with `@`, a backtick or a tab needs quotes around it"
        return self.stop("yaml", f"this is not valid YAML: {what}", self.spot(line, column), help_)

    def document(self, event: Any) -> None:
        if self.root is not None:
            at = self.spot(event.start_mark.line, event.start_mark.column)
            raise self.stop("yaml", "a second YAML document begins here; one is read", at)

    def scalar(self, event: Any) -> None:
        start, end = event.start_mark, event.end_mark
        line, style = start.line, event.style
        text: str = event.value
        at = self.spot(line, start.column, end.line, end.column)
        value: str | float | bool | None = text
        if not style:
            if text[:1] in _MEANINGFUL:
                value = core_scalar(text)
                if value is text and len(text) > DIGIT_LIMIT and _FLOAT.match(text):
                    self.fail("number", f"a number of more than {DIGIT_LIMIT} digits is not read", at)
        elif end.line != line and style in "'\"":
            self.check_indent(line, end.line, at)
        if event.tag is not None:
            self.tagged(event.tag, at)
        node = Scalar(value, text, at)
        self.counted += 1
        if event.anchor is not None:
            self.anchors[event.anchor] = (node, 1, 0)
        self.add(node, 0)

    def check_indent(self, line: int, last: int, at: At) -> None:
        """Warn when a quoted value goes on left of its own map: other YAML readers refuse that."""
        if not self.stack or self.stack[-1].column < 0:
            return
        need = self.stack[-1].column + 1
        for number in range(line + 1, last + 1):
            written = self.lines[number]
            if written.strip() and len(written) - len(written.lstrip(" ")) < need:
                message = (
                    "a quoted value goes on in a line that is not indented; some YAML readers refuse that"
                )
                help_ = f"indent line {self.first_line + number} by a space or more"
                self.notes.append(warning(f"{self.rule}-indent", message, at=at, help=help_))
                return

    def open_map(self, event: Any) -> None:
        self.open(event, {})

    def open_list(self, event: Any) -> None:
        self.open(event, None)

    def open(self, event: Any, keys: dict[str, At] | None) -> None:
        start, end = event.start_mark, event.end_mark
        at = self.spot(start.line, start.column, end.line, end.column)
        if event.tag is not None:
            self.tagged(event.tag, at)
        if len(self.stack) >= DEPTH_LIMIT:
            raise self.stop("depth", f"more than {DEPTH_LIMIT} maps or lists inside each other", at)
        self.counted += 1
        flow = event.flow_style or (bool(self.stack) and self.stack[-1].column < 0)
        column = -1 if flow else start.column
        self.stack.append(_Open(at, event.anchor, keys=keys, column=column, counted=self.counted))

    def close(self, event: Any) -> None:  # noqa: ARG002 - every handler takes its event
        done = self.stack.pop()
        node: Node = (
            Items(tuple(done.found), done.at) if done.keys is None else Mapping(tuple(done.found), done.at)
        )
        if done.anchor is not None:
            self.anchors[done.anchor] = (node, self.counted - done.counted + 1, done.height)
        self.add(node, done.height)

    def alias(self, event: Any) -> None:
        start, end = event.start_mark, event.end_mark
        at = self.spot(start.line, start.column, end.line, end.column)
        target = self.anchors.get(event.anchor)
        if target is None:  # also inside its own anchor: a tree that holds itself has no end
            raise self.stop("alias", f"`*{event.anchor}` stands for nothing that was written before it", at)
        node, size, height = target
        if len(self.stack) + height > DEPTH_LIMIT:
            raise self.stop("depth", f"more than {DEPTH_LIMIT} maps or lists inside each other", at)
        self.counted += size
        self.aliased += size
        if self.aliased > ALIAS_LIMIT:
            raise self.stop("alias", f"the aliases stand for more than {ALIAS_LIMIT} values", at)
        self.add(node, height)

    def add(self, node: Node, height: int) -> None:
        """Put a finished node where it belongs: into the innermost open map or list, or as the root."""
        if not self.stack:
            self.root = node
            return
        into = self.stack[-1]
        if height >= into.height:
            into.height = height + 1
        if into.keys is None:
            into.found.append(node)
        elif into.key is not None:
            key, at = into.key
            into.found.append(Entry(key, at, node))
            into.key = None
        elif type(node) is Scalar:
            first = into.keys.setdefault(node.text, node.at)
            if first is not node.at:
                message = f"the key `{node.text}` is here a second time; line {first.line} has it already"
                self.fail("duplicate-key", message, node.at, "keep one of the two")
            into.key = (node.text, node.at)
        else:
            self.fail(
                "key-not-scalar", "a key is a list or a map", node.at, "is there a `{{` that needs quotes?"
            )
            into.key = ("", node.at)

    def tagged(self, tag: str, at: At) -> None:
        self.fail(
            "tag", f"the tag `{tag}` is not read", at, "put the value in quotes if the `!` belongs to it"
        )
