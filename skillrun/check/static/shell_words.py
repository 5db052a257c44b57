"""Words: a shell script cut into simple commands, by tokens alone.

Not a parser: what it can't tell it leaves out. It knows quotes, comments, here-documents, substitutions,
`case` patterns and functions, since each of them would otherwise make a command of what is none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

DEPTH: Final = 20
"""Substitutions inside one another that are followed."""
_PLAIN = re.compile(r"[^\s'\"`\\$;|&(){}<>#]+")
_SINGLE = re.compile(r"[^']*'?")
_ANSI = re.compile(r"(?:\\.|[^'\\])*'?", re.DOTALL)
_IN_DOUBLE = re.compile(r"[^\"\\$`]+")
_VARIABLE = re.compile(r"\$(?:\{(?P<braced>[^}\n]*)\}|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|[0-9@*#?$!-])")
_HEREDOC = re.compile(r"<<(?P<dash>-?)[ \t]*(?P<quote>['\"\\]?)(?P<tag>[A-Za-z0-9_.!-]+)['\"]?")
_REDIRECT = re.compile(r"(?:&>>?|>>|>\||<>|>&|<&|>|<)")
_PLACEHOLDER = re.compile(r"<[A-Za-z][A-Za-z0-9_ -]*>(?=[\s\"';|&)]|$)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?:\[[^\]]*\])?\+?=")
_BEFORE_COMMAND: Final = frozenset(
    {"if", "then", "else", "elif", "do", "while", "until", "!", "{", "time", "&&", "||"}
)
_ALONE: Final = frozenset({"fi", "done", "esac", "}", "in"})
_GIVES_NAMES: Final = frozenset({"export", "local", "declare", "typeset", "readonly"})
UNKNOWN: Final = "\0"
"""Stands in a word for something that is not known before the script runs."""


@dataclass(frozen=True, slots=True)
class Command:
    """One simple command: its words, its redirections as operator and target, its place."""

    words: tuple[str, ...]
    redirects: tuple[tuple[str, str], ...]
    line: int
    column: int
    document: tuple[int, str] | None = None  # a here-document: first line and text


@dataclass(slots=True)
class Words:
    """The commands of a script, what it assigns and defines, and the variables it takes from outside.

    `taken` is each variable that is read: name, the operator behind it in braces, line, column. `kept` are those that
    are given their own value or a default, as in `NAME=${NAME:-x}`: they come from outside though they are assigned.
    """

    text: str
    commands: list[Command] = field(default_factory=list)
    assigned: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    taken: list[tuple[str, str, int, int]] = field(default_factory=list)
    kept: set[str] = field(default_factory=set)
    _starts: list[int] = field(default_factory=list)

    def scan(self) -> None:
        """Cut the whole text."""
        self._starts = [0, *(match.end() for match in re.finditer("\n", self.text))]
        _Scan(self, 0, 0).run()

    def place(self, position: int) -> tuple[int, int]:
        """Return line and column of a position."""
        import bisect  # noqa: PLC0415 - small, and only scripts of a shell need it

        line = bisect.bisect_right(self._starts, position)
        return line, position - self._starts[line - 1] + 1


class _Scan:
    """One level: the script, or the inside of a substitution up to its closing mark."""

    def __init__(self, words: Words, start: int, depth: int, closing: str = "") -> None:
        self.words = words
        self.text = words.text
        self.at = start
        self.depth = depth
        self.closing = closing
        self.current: list[str] = []
        self.redirects: list[tuple[str, str]] = []
        self.begin = start
        self.pending: list[tuple[str, bool]] = []  # here-documents whose text begins on the next line
        self.cases: list[bool] = []  # for each open `case`: whether a pattern is expected
        self.groups = 0

    def run(self) -> int:
        """Scan to the end or to the closing mark, and return the position behind it."""
        size = len(self.text)
        while self.at < size and not self.closed():
            if not self.blank() and not self.in_between():
                self.one_word()
        self.finish()
        self.at += 1
        return self.at

    def closed(self) -> bool:
        """Whether the closing mark of this level stands here."""
        character = self.text[self.at]
        if character != self.closing:
            return False
        return character == "`" or (not self.groups and not self.in_pattern())

    def blank(self) -> bool:
        """Go past what separates: blanks, line ends, comments."""
        text, character = self.text, self.text[self.at]
        if character in " \t\r":
            self.at += 1
        elif text.startswith("\\\n", self.at):
            self.at += 2
        elif character == "\n":
            self.finish()
            self.at += 1
            self.skip_documents()
        elif character == "#":
            end = text.find("\n", self.at)
            self.at = len(text) if end < 0 else end
        else:
            return False
        return True

    def in_between(self) -> bool:
        """Go past what is no word: patterns of `case`, operators, redirections, the marks of here-documents."""
        text, character = self.text, self.text[self.at]
        if self.in_pattern() and not self.current and self.skip_pattern():
            return True
        if character in ";|&()":
            self.operator(character)
        elif text.startswith("<<<", self.at):
            self.at += 3
            self.skip_blanks()
            self.word()
        elif character == "<" and (match := _HEREDOC.match(text, self.at)):
            self.pending.append((match["tag"], match["dash"] == "-"))
            self.at = match.end()
        elif (match := _PLACEHOLDER.match(text, self.at)) is not None:
            self.current.append(UNKNOWN)  # `<resource-group>`: what a person fills in, no redirection
            self.at = match.end()
        elif (match := _REDIRECT.match(text, self.at)) is not None:
            self.redirect(match)
        else:
            return False
        return True

    def in_pattern(self) -> bool:
        return bool(self.cases) and self.cases[-1]

    def skip_pattern(self) -> bool:
        """Go past a pattern of `case`, up to its `)`; false at `esac`."""
        if self.text.startswith("esac", self.at) and not self.text[self.at + 4 : self.at + 5].isalnum():
            self.cases[-1] = False
            return False
        end = re.compile(r"[^)\n]*").match(self.text, self.at)
        assert end is not None  # noqa: S101 - it matches the empty text too
        self.at = end.end() + 1
        self.cases[-1] = not self.text.startswith(")", end.end())
        return True

    def operator(self, character: str) -> None:
        text = self.text
        if character == "(" and len(self.current) == 1 and re.compile(r"\(\s*\)").match(text, self.at):
            self.words.functions.add(self.current[0])
            self.current.clear()
            self.at = text.index(")", self.at) + 1
            return
        if character == "(" and text.startswith("((", self.at):
            end = text.find("))", self.at)
            self.at = len(text) if end < 0 else end + 2
            return
        if character == "(" and self.current:  # an array, or a pattern: its words are no command
            self.array()
            return
        if character == "&" and text[self.at + 1 : self.at + 2] == ">":
            match = _REDIRECT.match(text, self.at)
            assert match is not None  # noqa: S101 - `&>` is one
            self.redirect(match)
            return
        self.groups += {"(": 1, ")": -1}.get(character, 0)
        self.groups = max(self.groups, 0)
        self.finish()
        if text.startswith(";;", self.at):
            if self.cases:
                self.cases[-1] = True
            self.at += 2
            return
        self.at += 1

    def array(self) -> None:
        """Go past words in parentheses, which may hold quotes, comments and line ends."""
        self.at += 1
        while self.at < len(self.text) and self.text[self.at] != ")":
            start = self.at
            if self.text[self.at] == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif not self.word() and self.at == start:
                self.at += 1
        self.at += 1

    def redirect(self, match: re.Match[str]) -> None:
        self.at = match.end()
        if self.current and self.current[-1].isdigit() and self.text[match.start() - 1].isdigit():
            self.current.pop()  # the number of a descriptor
        self.skip_blanks()
        if self.text.startswith("(", self.at):  # the other end is a command of its own
            self.at = (
                _Scan(self.words, self.at + 1, self.depth + 1, ")").run()
                if self.depth < DEPTH
                else len(self.text)
            )
            return
        target = self.word()
        if target:
            self.redirects.append((match[0], target))

    def one_word(self) -> None:
        start = self.at
        word = self.word()
        if self.at == start:
            self.at += 1  # a mark that means nothing here
            return
        if not self.current:
            assignment = _ASSIGNMENT.match(word)
            if assignment is not None and _ASSIGNMENT.match(self.text, start):
                self.words.assigned.add(assignment["name"])
                if self.text.startswith("(", self.at):
                    self.current.append(word)
                    self.operator("(")
                    self.current.clear()
                return
            if word in _BEFORE_COMMAND or word in _ALONE:
                if word == "esac" and self.cases:
                    self.cases.pop()
                return
            self.begin = start
        self.current.append(word)
        if word == "in" and self.current[0] == "case":
            self.current.clear()
            self.cases.append(True)

    def word(self) -> str:
        """Read one word: pieces without a blank between them. What is not known becomes UNKNOWN."""
        text, parts = self.text, []
        while self.at < len(text):
            character = text[self.at]
            if (match := _PLAIN.match(text, self.at)) is not None:
                parts.append(match[0])
                self.at = match.end()
            elif character == "#" and parts:
                parts.append("#")
                self.at += 1
            elif character in "{}":
                parts.append(character)
                self.at += 1
            elif character == "\\":
                parts.append(text[self.at + 1 : self.at + 2].replace("\n", ""))
                self.at += 2
            elif character == "'":
                match = _SINGLE.match(text, self.at + 1)
                assert match is not None  # noqa: S101 - it matches the empty text too
                parts.append(match[0].removesuffix("'"))
                self.at = match.end()
            elif character == '"':
                parts.append(self.double())
            elif character == "$" or (character == "`" and self.closing != "`"):
                parts.append(self.expansion())
            else:
                break
        return "".join(parts) if parts else ""

    def double(self) -> str:
        text, parts = self.text, []
        self.at += 1
        while self.at < len(text):
            character = text[self.at]
            if (match := _IN_DOUBLE.match(text, self.at)) is not None:
                parts.append(match[0])
                self.at = match.end()
            elif character == '"':
                self.at += 1
                break
            elif character == "\\":
                parts.append(text[self.at + 1 : self.at + 2])
                self.at += 2
            else:
                parts.append(self.expansion())
        return "".join(parts)

    def expansion(self) -> str:
        """Go past `$…` or a backtick, and scan the commands inside it."""
        text, start = self.text, self.at
        if text.startswith("$((", start):
            end = text.find("))", start)
            self.at = len(text) if end < 0 else end + 2
            return UNKNOWN
        if text.startswith("$'", start):
            match = _ANSI.match(text, start + 2)
            assert match is not None  # noqa: S101 - it matches the empty text too
            self.at = match.end()
            return match[0].removesuffix("'")
        inner = ")" if text.startswith("$(", start) else "`" if text[start] == "`" else ""
        if inner:
            begin = start + (2 if inner == ")" else 1)
            if self.depth >= DEPTH:
                self.at = len(text)
            else:
                self.at = _Scan(self.words, begin, self.depth + 1, inner).run()
            return UNKNOWN
        found = _VARIABLE.match(text, start)
        if found is None:
            self.at += 1
            return "$"
        self.at = found.end()
        return self.variable(found, start)

    def variable(self, found: re.Match[str], start: int) -> str:
        braced = found["braced"]
        name = found["name"] or ""
        operator = ""
        if braced is not None:
            match = _NAME.match(braced)
            if match is None:
                return UNKNOWN
            name, operator = match[0], braced[match.end() :][:2]
            self.at = self.braces(start)
        if name:
            self.words.taken.append((name, operator, *self.words.place(start)))
            if self.text.endswith((f"{name}=", f'{name}="'), max(0, start - len(name) - 2), start):
                self.words.kept.add(name)
        return "~" if name == "HOME" else UNKNOWN

    def braces(self, start: int) -> int:
        """Find the end of `${…}`, which may hold more of the same."""
        depth, position = 0, start
        limit = min(len(self.text), start + 4096)
        while position < limit:
            if self.text.startswith("${", position):
                depth += 1
                position += 2
                continue
            if self.text[position] == "}":
                depth -= 1
                if depth == 0:
                    return position + 1
            position += 1
        return limit

    def skip_blanks(self) -> None:
        while self.text[self.at : self.at + 1] in {" ", "\t"}:
            self.at += 1

    def skip_documents(self) -> None:
        """Go past the here-documents that begin here; the last command keeps the text of the last one."""
        for tag, dash in self.pending:
            lead = r"[ \t]*" if dash else ""
            first = self.at
            end = re.compile(rf"^{lead}{re.escape(tag)}[ \t]*$", re.MULTILINE).search(self.text, self.at)
            body = self.text[first : end.start()] if end is not None else self.text[first:]
            self.at = len(self.text) if end is None else end.end()
            if self.words.commands:
                last = self.words.commands[-1]
                self.words.commands[-1] = Command(
                    last.words, last.redirects, last.line, last.column, (self.words.place(first)[0], body)
                )
        self.pending.clear()

    def finish(self) -> None:
        """End a simple command."""
        if self.current and self.current[0] in _GIVES_NAMES | {
            "read",
            "getopts",
            "for",
            "select",
            "mapfile",
            "readarray",
        }:
            for word in self.current[1:]:
                name = _NAME.match(word)
                if name is not None:
                    self.words.assigned.add(name[0])
        if self.current and self.current[0] == "function" and len(self.current) > 1:
            self.words.functions.add(self.current[1])
        elif self.current or self.redirects:
            line, column = self.words.place(min(self.begin, max(len(self.text) - 1, 0)))
            self.words.commands.append(Command(tuple(self.current), tuple(self.redirects), line, column))
        self.current = []
        self.redirects = []
        self.begin = self.at
