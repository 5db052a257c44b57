"""The key of a skill: the rule for names, and what happens to a name that breaks it (A-07 d, A-14, A-15)."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillrun.problem import Severity
from skillrun.skills.keys import as_key, skill_key

MANIFEST = Path("/x/folder/SKILL.md")


@pytest.mark.parametrize("name", ["a", "1", "pdf-tools", "a-1-b", "x" * 64, "on", "yes", "8004"])
def test_a_name_by_the_rule_is_its_own_key(name: str) -> None:
    """1 to 64 of a-z, 0-9 and single hyphens."""
    assert as_key(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../../etc",
        "/abs",
        "a/b",
        "a\\b",
        "a b",
        "A",
        "a_b",
        "-a",
        "a-",
        "a--b",
        "x" * 65,
        "café",
        "中",
        "٣",
        "a\n",
        "\na",
        "a\x00",
        "a.b",
        "~",
        "$HOME",
        "a\u200b",
        "\uff41/\uff42",
        "ﬁ ﬁ",
        "a\u2024b",
    ],
)
def test_a_name_that_breaks_the_rule_is_no_key(name: str) -> None:
    """A-15: nothing that could leave a folder, look like another name, or end a line is a key."""
    assert as_key(name) is None


@pytest.mark.parametrize(("name", "key"), [("\uff50\uff44\uff46", "pdf"), ("ﬁle", "file"), ("a\uff11", "a1")])
def test_compatibility_forms_are_their_plain_letters(name: str, key: str) -> None:
    """Two names that read the same are the same key (NFKC)."""
    assert as_key(name) == key


def test_a_14_the_name_is_the_key_and_the_folder_is_told() -> None:
    """A-14: where name and folder differ the name is the key, and a warning says so."""
    key, problems = skill_key("bar", "foo", manifest=MANIFEST, at=None)
    assert key == "bar"
    assert [(problem.rule, problem.severity) for problem in problems] == [
        ("name-differs-from-folder", Severity.WARNING)
    ]


def test_a_15_the_folder_stands_in_for_a_bad_name() -> None:
    """A-15: a name that is no key is reported with the rule, and the folder's name is used."""
    key, problems = skill_key("../../etc", "foo", manifest=MANIFEST, at=None)
    assert key == "foo"
    assert [problem.rule for problem in problems] == ["name-rule"]
    assert "a-z" in problems[0].message


def test_a_skill_may_have_no_key() -> None:
    """Where neither can be a key the skill is reachable by its path only, and says so."""
    key, problems = skill_key("My Skill", "My Skills", manifest=MANIFEST, at=None)
    assert key is None
    assert "path" in problems[0].message


@pytest.mark.parametrize("name", ["foo", None])
def test_equal_or_missing_names_are_silent_here(name: str | None) -> None:
    """The same name needs no word; a missing one is told where the front matter is read."""
    assert skill_key(name, "foo", manifest=MANIFEST, at=None) == ("foo", ())
