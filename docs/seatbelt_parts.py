"""The generated parts of the pages about Seatbelt: each rule of our profile from its comments, each audit rule from its file."""
# ruff: noqa: INP001 - a program of the documentation, not a package

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from skillrun.check.profile.rules import RULES
from skillrun.resources import folder, table

if TYPE_CHECKING:
    from collections.abc import Iterator

_ORDER: Final = ("denied", "process", "system", "runtime", "network", "grant", "kept", "own")
# Rules whose filters stand in the lines below, one for each path.
_OPENED: Final = {
    "(allow)": '(allow … (subpath (param "OWN_0")))',
    "(allow file-read-metadata file-test-existence)": "(allow file-read-metadata file-test-existence (path-ancestors (param …)))",
    "(allow file-read* file-test-existence)": '(allow file-read* file-test-existence (literal (param "LINK_0")))',
    "(allow file-read* file-test-existence file-map-executable process-exec*)": '(allow file-read* file-test-existence file-map-executable process-exec* (subpath (param "READ_0")))',
    "(allow file-write* file-link file-clone)": '(allow file-write* file-link file-clone (subpath (param "WRITE_0")))',
    "(define (guard place))": '(guard (param "PLACE_0"))',
    "(define (guard place) (deny file-write-unlink))": "(deny file-write-unlink …) in (guard …)",
    "(define (hide place))": '(hide (param "SECRETS_OF_0"))',
    "(define (hide place) (deny file-write-unlink))": "(deny file-write-unlink …) in (hide …)",
    "(keep-unchanged (require-any))": '(keep-unchanged (subpath (param "GUARDED_0")) …)',
    "(keep-away (require-any))": '(keep-away (subpath (param "HIDDEN_0")) …)',
    "(deny file-write-unlink)": '(deny file-write-unlink (literal (param "WRITE_0")) …)',
}
_SHORT: Final = 70  # characters of a line that its rule is written before
_THING: Final = re.compile(r"^\s*(?P<code>\(.*?)\s*;\s+(?P<why>.+)$")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _rows(text: str) -> Iterator[tuple[str, str]]:
    """Give each line of a template that has a reason behind it, as code and reason; what an allow opens as a heading."""
    rule = ""
    for line in text.splitlines():
        if line.startswith(("(allow", "(deny", "(define")):
            rule = line
        found = _THING.match(line)
        if found is None or "{{" in found["why"]:
            continue
        code = re.sub(r"\{\{.*?\}\}|\{%.*?%\}", "…", found["code"]).strip()
        code = re.sub(r"^\(if \(defined\? '[^)]*\) (\(.*\))\)$", r"\1", code)
        if line.startswith(" ") and rule:
            words = re.sub(r"\s*;.*", "", rule).split()
            words = [word for word in words if not word.startswith(("(literal", "(subpath", "(target"))]
            code = f"{' '.join(words)} {code}" if len(code) < _SHORT else code
        # What an inner line leaves open is closed here: a row shows one thing.
        code += ")" * (code.count("(") - code.count(")"))
        while code.count(")") > code.count("("):
            code = code[:-1]
        yield _OPENED.get(code, code), found["why"]


def seatbelt_profile() -> str:
    """Write every rule of the profile with what it is for, section by section."""
    parts = []
    for name in _ORDER:
        text = (folder("profiles") / "seatbelt" / f"{name}.sb.j2").read_text(encoding="utf-8")
        text = re.sub(r"\{#.*?#\}", "", text, flags=re.DOTALL)
        title = re.search(r"^;; (.+)$", text, re.MULTILINE)
        if name == "runtime":
            text += "".join(
                f'(allow sysctl-read "{line["name"]}{"…" if line.get("prefix") else ""}")  ; {line["why"]}\n'
                for line in table("seatbelt/sysctl")["names"]
            )
        rows = [f"| `{_cell(code)}` | {_cell(why)} |" for code, why in _rows(text)]
        heading = title.group(1) if title else name
        parts.append("\n".join([f"### {heading}", "", "| rule | what it is for |", "| --- | --- |", *rows]))
    return "\n\n".join(parts)


def audit_rules() -> str:
    """Write the page of each audit rule."""
    parts = []
    for rule in RULES:
        name = rule.__name__.rpartition(".")[2].replace("_", "-")
        first, _, rest = (rule.__doc__ or "").strip().partition("\n")
        parts.append(f"### {name}\n\n{first}" + (f"\n\n{rest.strip()}" if rest.strip() else ""))
    return "\n\n".join(parts)
