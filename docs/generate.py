"""Write the generated parts of the documentation: the tables of its pages, and the JSON Schemas.

    python docs/generate.py            rewrite what is out of date
    python docs/generate.py --check    show it as a diff instead, exit code 1

A page holds `<!-- generated: NAME -->`, what `tables.PARTS[NAME]` returns, and `<!-- end -->`.
"""
# ruff: noqa: INP001, T201 - a program of the documentation, not a package; it prints

from __future__ import annotations

import difflib
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import check_schemas
import tables
import waiting_schemas

import schemas

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT: Final = Path(__file__).resolve().parent.parent
_PART = re.compile(r"<!-- generated: (?P<name>[a-z0-9-]+) -->\n.*?<!-- end -->", re.DOTALL)
_OPENING = "<!-- generated:"


def render(page: str, name: str) -> str:
    """Return a page with every generated part made anew. SystemExit when a marker is wrong."""

    def part(found: re.Match[str]) -> str:
        make = tables.PARTS.get(found["name"])
        if make is None:
            raise SystemExit(
                f"error: {name}: there is no generated part `{found['name']}`; there are {', '.join(tables.PARTS)}"
            )
        return f"<!-- generated: {found['name']} -->\n\n{make()}\n\n<!-- end -->"

    if page.count(_OPENING) != len(_PART.findall(page)):
        raise SystemExit(f"error: {name}: a marker is never closed; write `<!-- end -->` behind each part")
    return _PART.sub(part, page)


def wanted(root: Path = ROOT) -> Iterator[tuple[Path, str]]:
    """Yield every file that has generated parts, with the text it should have."""
    for page in sorted((root / "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        if _OPENING in text:
            yield page, render(text, page.relative_to(root).as_posix())
    written = {
        "skill-md": schemas.skill_md(),
        "skillrun-yaml": schemas.skillrun_yaml(),
        "check": check_schemas.check(),
        "skillrun-lock": check_schemas.lock(),
        "skillrun-baseline": check_schemas.baseline(),
        "pending": waiting_schemas.pending(),
        "chat": waiting_schemas.chat(),
    }
    for name, schema in written.items():
        yield (
            root / "schemas" / f"{name}.schema.json",
            json.dumps(schema, indent=2, ensure_ascii=False) + "\n",
        )


def difference(root: Path = ROOT) -> str:
    """Return what is out of date as a diff, empty when nothing is."""
    lines: list[str] = []
    for path, text in wanted(root):
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        name = path.relative_to(root).as_posix()
        lines += difflib.unified_diff(
            old.splitlines(keepends=True), text.splitlines(keepends=True), f"a/{name}", f"b/{name}", n=1
        )
    return "".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Rewrite or check."""
    if arguments == ["--check"]:
        found = difference()
        print(found or "the generated parts are up to date", end="" if found else "\n")
        return 1 if found else 0
    if arguments:
        print((__doc__ or "").strip(), file=sys.stderr)
        return 2
    for path, text in wanted():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
