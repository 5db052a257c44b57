"""The project's pages tell the truth: commands that exist, links that resolve, no wrong package to install."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SKIPPED = frozenset(
    {
        ".git",
        ".venv",
        "node_modules",
        "build",
        "dist",
        "__pycache__",
        ".hypothesis",
        ".peers",
        ".npm",
        ".pytest_cache",
    }
)
PAGES = sorted(path for path in ROOT.rglob("*.md") if not SKIPPED & set(path.relative_to(ROOT).parts))

# `skillrun` on the index is somebody else's package. Any installer, any options, extras and version marks; not
# `skillrun-sandbox`, not a path such as ./skillrun.
INSTALLERS = (
    r"(?:pipx?|uv(?:\s+pip)?|uv\s+tool|poetry|pdm|rye|conda)\s+(?:install|add|run|inject)|uvx|pipx\s+run"
)
WRONG_INSTALL = re.compile(
    rf"(?:{INSTALLERS})(?:[ \t]+[^\s;&|`#]+)*?[ \t]+[\"']?skillrun(?![-\w./])", re.IGNORECASE
)


def texts() -> list[Path]:
    """List every text file of the project, this one left out: it has to spell out what it forbids."""
    return sorted(
        path
        for path in ROOT.rglob("*")
        if path.is_file()
        and not SKIPPED & set(path.relative_to(ROOT).parts)
        and not any(part.endswith((".egg-info", "_cache")) for part in path.relative_to(ROOT).parts)
        and path != Path(__file__).resolve()
        and b"\0" not in path.read_bytes()[:4096]
    )


def test_nobody_is_told_to_install_somebody_elses_package() -> None:
    """No text of the project says to install `skillrun` from an index."""
    files = texts()
    assert ROOT / "README.md" in files
    told = [
        f"{path.relative_to(ROOT)}: {found.group()}"
        for path in files
        for found in WRONG_INSTALL.finditer(path.read_text(errors="replace"))
    ]
    assert told == []


@pytest.mark.parametrize(
    "text",
    [
        "pip install skillrun",
        "python -m pip install --upgrade 'skillrun[mcp]'",
        "pip install -U requests skillrun==1.0",
        "uv pip install skillrun",
        "uvx skillrun run x",
        "pipx run skillrun",
        "uv tool install skillrun",
        "uv add skillrun",
    ],
)
def test_every_way_to_say_it_is_seen(text: str) -> None:
    """The pattern above catches each usual way to install a package."""
    assert WRONG_INSTALL.search(f"Run `{text}` first.")


@pytest.mark.parametrize(
    "text",
    [
        "pip install skillrun-sandbox",
        "pip install -e . # for skillrun",
        "pip install ./skillrun",
        "pip install --editable '.[test]'",
        "skillrun run skills/hello",
        "pip install requests; skillrun list",
    ],
)
def test_the_right_package_is_not_reported(text: str) -> None:
    """Our own distribution, paths and the command itself are fine."""
    assert not WRONG_INSTALL.search(text)


def make_targets() -> set[str]:
    """Read the documented targets of the Makefile."""
    return set(re.findall(r"^([a-z][a-z-]*):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))


def shell_lines(page: Path) -> list[str]:
    """Return the lines of every shell block of a page, continued lines joined, comments cut off."""
    blocks = re.findall(r"```(?:sh|bash|console)\n(.*?)```", page.read_text(), re.DOTALL)
    joined = "\n".join(blocks).replace("\\\n", " ")
    return [re.sub(r"(^|\s)#.*", "", line).strip() for line in joined.splitlines()]


def test_the_readme_starts_with_the_two_commands() -> None:
    """The first shell block of the README is `make` and `make test`."""
    first, second = [line for line in shell_lines(ROOT / "README.md") if line][:2]
    assert (first, second) == ("make", "make test")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_make_commands_exist(page: Path) -> None:
    """Every `make TARGET` that a page names, in a block or in a sentence, is a documented target."""
    named = set(re.findall(r"`make ([a-z][a-z-]*)`", page.read_text()))
    named |= {line.split()[1] for line in shell_lines(page) if re.match(r"make [a-z]", line)}
    assert named <= make_targets()


def test_the_targets_are_documented_by_help() -> None:
    """`make help` lists every target that the Makefile calls phony."""
    listing = subprocess.run(
        ["make", "-C", str(ROOT), "help"], capture_output=True, text=True, check=True
    ).stdout
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony is not None
    assert set(re.findall(r"^  make ([a-z-]+) ", listing, re.MULTILINE)) == set(phony.group(1).split())


def test_the_python_of_the_readme_runs(tmp_path: Path) -> None:
    """The Python block of the README works as it stands, in a folder that holds the example skills."""
    (program,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    shutil.copytree(ROOT / "skills", tmp_path / "skills", ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    # On a machine that can't confine, nothing is started, and the Result says so.
    assert "linux" not in os.environ.get("SKILLRUN_REQUIRE_BACKENDS", "") or "exited" in done.stdout.lower()


def test_commands_of_the_readme_name_skills_that_exist() -> None:
    """A `skills/NAME` in a command of the README is there."""
    named = {
        word for line in shell_lines(ROOT / "README.md") for word in re.findall(r"\bskills/[\w./-]+", line)
    }
    assert named
    assert [word for word in sorted(named) if not (ROOT / word).exists()] == []


def anchor(heading: str) -> str:
    """Make the anchor that a heading gets on a web page."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def links(page: Path) -> list[tuple[str, str]]:
    """List the relative links of a page, outside code, as (path, fragment)."""
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
    found = re.findall(r"\]\(([^)\s]+)\)|^\[[^\]]+\]:\s*(\S+)", prose, re.MULTILINE)
    paths = [inline or reference for inline, reference in found]
    return [
        (path, fragment) for path, _, fragment in (one.partition("#") for one in paths) if "://" not in path
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_relative_links_resolve(page: Path) -> None:
    """Every relative link leads to a file, and its fragment to a heading there."""
    for path, fragment in links(page):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name} links to {path}"
        if fragment:
            headings = re.findall(r"^#+ (.+)$", target.read_text(), re.MULTILINE)
            assert fragment in {anchor(heading) for heading in headings}, (
                f"{page.name} links to {path}#{fragment}"
            )


def test_security_names_tests_that_exist() -> None:
    """Every test file that SECURITY.md names for a guarantee is there."""
    named = set(re.findall(r"`(tests/[\w./-]+)`", (ROOT / "SECURITY.md").read_text()))
    assert named
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []
