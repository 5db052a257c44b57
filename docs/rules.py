"""The pages of the rules of `check`, made from the docstrings of the rules."""
# ruff: noqa: INP001 - beside the pages, not a package

from __future__ import annotations

from skillrun.check.registry import RULES


def check_rules() -> str:
    """Return all pages, each under its name, with a table of them in front."""
    table = ["| rule | severity | what it finds |", "|---|---|---|"]
    table += [f"| [`{rule.name}`](#{rule.name}) | {rule.severity.value} | {rule.phrase} |" for rule in RULES]
    pages = [f"## {rule.name}\n\n{rule.page[:1].upper()}{rule.page[1:].rstrip()}" for rule in RULES]
    return "\n".join(table) + "\n\n" + "\n\n".join(pages)
