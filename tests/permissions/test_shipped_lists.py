"""The shipped lists: every line well formed, with its reason, and no line that breaks what it must not."""

from __future__ import annotations

import fnmatch
import re
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from skillrun.permissions.capabilities import Endpoint
from skillrun.permissions.environment import always_passed, refusal
from skillrun.resources import folder, table

if TYPE_CHECKING:
    from pathlib import Path


def test_every_secret_name_is_plain_and_has_a_reason() -> None:
    """Relative names of whole components, each once; patterns and `..` would be looked up as names."""
    names = [name for group in table("secrets")["secrets"] for name in group["names"]]
    assert all(group["reason"] for group in table("secrets")["secrets"])
    assert len(names) == len(set(names))
    for name in names:
        assert re.fullmatch(r"[A-Za-z_.][A-Za-z0-9_.-]*(/[A-Za-z0-9_.-]+)*", name), name
        assert ".." not in name.split("/")
    assert {".env", ".ssh", ".aws", ".netrc", ".npmrc"} <= set(names)


def test_no_secret_name_covers_a_folder_where_skills_live() -> None:
    """`.claude` as a whole would deny `.claude/skills`, the folder that a skill runs from."""
    names = {name for group in table("secrets")["secrets"] for name in group["names"]}
    for home in ("skills", ".claude/skills", ".agents/skills"):
        parts = home.split("/")
        assert not {"/".join(parts[: i + 1]) for i in range(len(parts))} & names


@pytest.mark.parametrize(
    "name",
    [
        *(
            "LD_PRELOAD",
            "LD_AUDIT",
            "DYLD_INSERT_LIBRARIES",
            "PYTHONSTARTUP",
            "NODE_OPTIONS",
            "PERL5OPT",
            "RUBYOPT",
            "BASH_ENV",
            "ENV",
        ),
        *(
            "PATH",
            "HOME",
            "TMPDIR",
            "HTTPS_PROXY",
            "all_proxy",
            "GIT_SSH_COMMAND",
            "SSH_AUTH_SOCK",
            "SKILLRUN_SKILL",
            "IFS",
        ),
        *(
            "OPENAI_API_KEY",
            "ANTHROPIC_API_KEY",
            "GEMINI_API_KEY",
            "HF_TOKEN",
            "openai_api_key",
            "CLAUDE_CODE_OAUTH_TOKEN",
        ),
    ],
)
def test_names_that_are_never_passed(name: str) -> None:
    """Loader, interpreter, path, proxy and provider-key names are refused in any letter case, with the reason."""
    assert refusal(name)


@pytest.mark.parametrize(
    "name", ["TZ", "LANG", "COLUMNS", "GITHUB_TOKEN", "DATABASE_URL", "MY_PATH", "PROXY_TABLE", "ENVIRONMENT"]
)
def test_names_that_an_operator_can_allow(name: str) -> None:
    """The list is about names that take control; other secrets are the operator's own decision."""
    assert refusal(name) is None


def test_the_environment_list_is_well_formed() -> None:
    """Every group has a reason, patterns are only prefixes, suffixes or an inner star, and nothing always passed is refused."""
    for group in table("env")["refused"]:
        assert group["reason"]
        for name in group["names"]:
            assert re.fullmatch(r"\*?[A-Z0-9_]+\*?[A-Z0-9_]*", name), name
            assert fnmatch.fnmatchcase(name.replace("*", "X"), name)
    assert all(refusal(name) is None for name in always_passed())
    assert {"TZ", "LANG"} <= always_passed()


def test_shared_suffixes_are_refused_as_stars_only() -> None:
    """`*.github.io` trusts strangers; `me.github.io` and `*.me.github.io` are one owner's."""
    for suffix in table("suffixes")["shared"]:
        assert Endpoint(f"me.{suffix}").host == f"me.{suffix}"
        assert Endpoint(f"*.me.{suffix}").host == f"*.me.{suffix}"
        with pytest.raises(ValueError, match="anybody"):
            Endpoint(f"*.{suffix}")


@pytest.mark.parametrize(
    "path", sorted((folder("profiles") / "ceilings").glob("*.yaml")), ids=lambda p: p.stem
)
def test_every_preset_says_why(path: Path) -> None:
    """A key of `sandbox` stands below a comment with its reason; the file starts with what the preset is for."""
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith(f"# {path.stem}: ")
    for before, line in pairwise(lines):
        if re.match(r"  [a-z_]+:", line) and not line.startswith("  limits:"):
            assert before.lstrip().startswith("#"), line
