"""Front matter: the YAML between the first two fences of a SKILL.md, each value with its place.

A fence is a line of exactly `---` (LF or CRLF). Anything that only looks like one is said, never guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skillrun.errors import SkillError
from skillrun.problem import At, Problem, error, warning
from skillrun.skills.node import Mapping, Scalar
from skillrun.skills.strict_yaml import YamlProblem, decode_text, read_yaml

if TYPE_CHECKING:
    from pathlib import Path

RULE: Final = "front-matter"
FENCE: Final = "---"
_CLOSING = re.compile(r"^---$", re.MULTILINE)
_NEARLY_CLOSING = re.compile(r"^[ \t]*---.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """What was read: the keys (none when the block is empty), and what is odd but no error.

    `body_line` is the number of the first line behind the closing fence.
    """

    mapping: Mapping
    body_line: int
    problems: tuple[Problem, ...] = ()

    def text(self, key: str) -> str | None:
        """Return the value of a key that holds a string, None when it is absent or something else."""
        entry = self.mapping.get(key)
        value = entry.value.value if entry is not None and isinstance(entry.value, Scalar) else None
        return value if isinstance(value, str) else None


def read_front_matter(data: bytes, *, path: Path) -> FrontMatter:
    """Read the front matter out of the bytes of a SKILL.md.

    Raises SkillError, and nothing else, whatever the bytes are: `front-matter-too-large`, `-not-utf8`,
    `-empty-file`, `-no-fence`, `-comment-before-fence`, `-blank-line-before-fence`, `-fence-not-exact`,
    `-unclosed`, and those of `read_yaml`.
    """
    try:
        text = decode_text(data, path=path, rule=RULE)
        if not text.startswith("---\n"):
            raise SkillError(_without_fence(text, path))
        closing = _CLOSING.search(text, len(FENCE) + 1)
        if closing is None:
            raise SkillError(_unclosed(text, path))
        inside = text[len(FENCE) + 1 : closing.start()]
        body_line = 3 + inside.count("\n")
        notes: list[Problem] = []
        try:
            mapping = read_yaml(inside, path=path, first_line=2, rule=RULE, notes=notes)
        except YamlProblem as wrong:
            if wrong.problem.rule != f"{RULE}-empty":
                raise
            at = At(path, 1, 1, len(FENCE) + 1, excerpt=FENCE)
            message = "the front matter is empty: the skill has no name and no description"
            empty = warning(wrong.problem.rule, message, at=at, help="write `name: …` and `description: …`")
            return FrontMatter(Mapping((), at), body_line, (empty,))
    except YamlProblem as wrong:
        raise SkillError(*wrong.problems) from None
    return FrontMatter(mapping, body_line, (*notes, *_odd_name(mapping, path)))


def _without_fence(text: str, path: Path) -> Problem:
    """Say why a text has no front matter, by what stands where the fence should be."""
    first, _, rest = text.partition("\n")
    at = At(path, 1, 1, len(first) + 1 if first else 2, excerpt=first)
    help_ = "begin the file with a line of exactly `---`"
    bare = text.lstrip("\ufeff \t\r\n")
    if not text.strip():
        return error(f"{RULE}-empty-file", "the file is empty", at=At(path, 1, 1), help=help_)
    if first == FENCE and not rest:
        return error(
            f"{RULE}-unclosed", "the front matter is never closed", at=at, help="add a line of exactly `---`"
        )
    if first.startswith(FENCE):
        message = "the first line begins with `---` but is longer, so it opens no front matter"
        return error(f"{RULE}-fence-not-exact", message, at=at, help="a fence is a line of exactly `---`")
    if not first.strip() and bare.startswith(FENCE):
        message = "a blank line stands before the opening `---`, so the file has no front matter"
        return error(f"{RULE}-blank-line-before-fence", message, at=at, help="remove the lines above it")
    if bare.startswith("<!--"):
        message = "a comment stands before the front matter, so the file has none"
        return error(
            f"{RULE}-comment-before-fence", message, at=at, help="move the comment below the front matter"
        )
    return error(f"{RULE}-no-fence", "the file has no front matter", at=at, help=help_)


def _unclosed(text: str, path: Path) -> Problem:
    """Say that the closing fence is missing, and which line was perhaps meant to be it."""
    help_ = "add a line of exactly `---` behind the last key"
    near = _NEARLY_CLOSING.search(text, len(FENCE) + 1)
    if near is not None:
        line = text.count("\n", 0, near.start()) + 1
        help_ = f"line {line} begins with `---` but is not exactly that"
    at = At(path, 1, 1, len(FENCE) + 1, excerpt=FENCE)
    return error(
        f"{RULE}-unclosed", "the front matter is never closed, so nothing of it counts", at=at, help=help_
    )


def _odd_name(mapping: Mapping, path: Path) -> tuple[Problem, ...]:
    """Warn about a name that is missing or no string. Its characters are the business of `keys`."""
    entry = mapping.get("name")
    if entry is None:
        at = At(path, 1, 1, len(FENCE) + 1, excerpt=FENCE)
        message = "the front matter has no `name`"
        return (
            warning(
                f"{RULE}-name-missing", message, at=at, help="write `name: …`, usually the folder's name"
            ),
        )
    if isinstance(entry.value, Scalar) and isinstance(entry.value.value, str):
        return ()
    message = "the `name` is not a string"
    help_ = "put it in quotes" if isinstance(entry.value, Scalar) and entry.value.text else "write `name: …`"
    return (warning(f"{RULE}-name-type", message, at=entry.value.at, help=help_),)
