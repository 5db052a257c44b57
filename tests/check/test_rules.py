"""Every rule: what it flags, in exact words, and a near miss that stays silent."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from rule_cases import CASES, ELSEWHERE, WIDE

from skillrun.check.registry import BY_NAME, RULES
from skillrun.report import findings
from skillrun.report.showing import View

if TYPE_CHECKING:
    from collections.abc import Callable

    from collection import Collection


def test_every_rule_has_a_case() -> None:
    """No rule is without a fixture that it flags and one that it does not."""
    assert {rule.name for rule in RULES} == set(CASES) | ELSEWHERE
    assert len(BY_NAME) == len(RULES)


@pytest.mark.parametrize("name", CASES)
def test_flagged(name: str, collection: Collection, snapshot: Callable[[str, str], None]) -> None:
    """The rule finds what it is there for; the words, the place and the carets are those on file."""
    case = CASES[name]
    collection.write("wide.yaml", WIDE)
    case.flagged(collection)
    report = collection.report(case.ceiling)
    found = tuple(finding for finding in report.findings if finding.rule == name)
    assert found
    text = "\n".join(
        findings.plain(replace(report, findings=found, ignored=()), View(collection.folder, 100))
    )
    assert str(collection.folder) not in text, "a finding has no place of this machine in it"
    # What a parser says of an error, and how it counts, depends on its version.
    snapshot(
        f"{name}.txt", re.sub(r"Python 3\.\d+ can't parse it: .*", "PYTHON can't parse it: REASON", text)
    )


@pytest.mark.parametrize("name", CASES)
def test_near_miss(name: str, collection: Collection) -> None:
    """What is nearly the same is not flagged."""
    case = CASES[name]
    collection.write("wide.yaml", WIDE)
    case.near(collection)
    report = collection.report(case.ceiling)
    assert report.subjects, "the near miss is a skill"
    assert [finding.problem.message for finding in report.findings if finding.rule == name] == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_page(rule: object) -> None:
    """A page says what it finds in one phrase, why that matters and what to do."""
    page = BY_NAME[rule.name].page  # type: ignore[attr-defined]
    first = page.splitlines()[0]
    assert first.endswith(".")
    assert first[0].islower() or first.startswith(("a SKILL", "`"))
    assert page.splitlines()[1] == ""
    assert "**Why it matters.**" in page or rule.name == "other-problem"  # type: ignore[attr-defined]
    assert "**What to do.**" in page
    assert all(len(line) <= 120 for line in page.splitlines())
