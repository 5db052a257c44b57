"""What the pages show is what happens: commands, their output, Python programs, example files."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attack
import jsonschema
import pytest

from skillrun.permissions.config import Role, config_from_node
from skillrun.permissions.request import read_request
from skillrun.skills.front_matter import read_front_matter
from skillrun.skills.model import Skill
from skillrun.skills.node import Items, Mapping, Node
from skillrun.skills.strict_yaml import read_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(page for page in (ROOT / "docs").rglob("*.md") if page.name != "cli.md")
FENCE = re.compile(r"^```(?P<kind>\w+)(?: (?P<title>\S+))?\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
MARK: Final = "\x01"


@dataclass(frozen=True, slots=True)
class Step:
    """One command of a page, the lines that the page shows below it, and whether the next command asks for `$?`."""

    command: str
    shown: tuple[str, ...]


def steps(page: Path) -> Iterator[Step]:
    """Yield the commands of the `console` blocks and the programs of the `python` blocks, in the order of the page."""
    for block in FENCE.finditer(page.read_text()):
        if block["kind"] == "python":
            yield Step(f"python -W error - <<'END_OF_PROGRAM'\n{block['body']}END_OF_PROGRAM", ("...",))
        if block["kind"] != "console":
            continue
        commands: list[tuple[str, list[str]]] = []
        for line in block["body"].splitlines():
            if line.startswith("$ "):
                commands.append((line[2:], []))
            elif line == ">" or line.startswith("> "):
                commands[-1] = (f"{commands[-1][0]}\n{line[2:]}", commands[-1][1])
            else:
                commands[-1][1].append(line)
        yield from (Step(command, tuple(shown)) for command, shown in commands)


def matches(shown: tuple[str, ...], real: list[str]) -> bool:
    """Whether real lines are what a page shows: `...` alone stands for any lines, `…` for the rest of a word or line."""
    if not shown:
        return not real
    if shown[0] == "...":
        return any(matches(shown[1:], real[cut:]) for cut in range(len(real) + 1))
    pattern = ".*".join(re.escape(part) for part in shown[0].split("…"))
    return bool(real) and re.fullmatch(pattern, real[0]) is not None and matches(shown[1:], real[1:])


def play(page: Path, home: Path) -> list[tuple[Step, int, list[str]]]:
    """Run the commands of a page in one shell, in a copy of the checkout below a home of its own."""
    checkout = home / "skillrun"
    shutil.copytree(ROOT / "skills", checkout / "skills", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "schemas", checkout / "schemas")
    found = list(steps(page))
    # The status survives the line that reports it, so that a page can ask for `$?`.
    script = "".join(f"{one.command}\n__s=$?; printf '{MARK}%s{MARK}' $__s; (exit $__s)\n" for one in found)
    environ = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "COLUMNS": "100",
    }
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=checkout,
        env=environ,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        check=False,
        timeout=100,
    )
    parts = done.stdout.split(MARK)[:-1]
    return [
        (step, int(parts[2 * number + 1]), parts[2 * number].splitlines())
        for number, step in enumerate(found)
        if 2 * number + 1 < len(parts)
    ]


@pytest.fixture(scope="module")
def confining() -> None:
    """Skip where scripts can't be confined: the pages show what happens where they can."""
    command = [sys.executable, "-m", "skillrun", "doctor", "--json"]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        attack.missing("linux", "scripts can't be confined on this machine")


@pytest.mark.usefixtures("confining")
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if any(steps(page))],
    ids=lambda page: str(page.relative_to(ROOT / "docs")),
)
def test_the_commands_of_a_page_do_what_it_shows(page: Path, tmp_path: Path) -> None:
    """Every command works, or the page asks for its exit code next; what it prints is what stands below it."""
    home = tmp_path / "home"
    home.mkdir()
    played = play(page, home)
    assert len(played) == len(list(steps(page))), "the shell ended before the page did"
    for number, (step, status, real) in enumerate(played):
        asked = number + 1 < len(played) and played[number + 1][0].command == "echo $?"
        assert status == 0 or asked, f"$ {step.command}\nexited with {status}:\n" + "\n".join(real)
        shown = "\n".join(step.shown)
        assert matches(step.shown, real), (
            f"$ {step.command}\nthe page shows:\n{shown}\nit printed:\n" + "\n".join(real)
        )


def bare(node: Node) -> object:
    """Turn a strict tree into what an editor sees."""
    if isinstance(node, Mapping):
        return {entry.key: bare(entry.value) for entry in node}
    return [bare(item) for item in node] if isinstance(node, Items) else node.value


def titled(title: str) -> list[tuple[str, str]]:
    """List the YAML blocks of all pages that have a title, each with the page's name."""
    return [
        (page.name, block["body"])
        for page in PAGES
        for block in FENCE.finditer(page.read_text())
        if block["kind"] == "yaml" and block["title"] == title
    ]


@pytest.mark.parametrize(("page", "body"), titled("SKILL.md"))
def test_example_front_matter_is_read(page: str, body: str) -> None:
    """A front matter that a page shows is read without any problem, and its schema takes it."""
    front = read_front_matter(f"---\n{body}---\n".encode(), path=Path("SKILL.md"))
    assert front.problems == (), page
    here = Path("/demo")
    request = read_request(
        Skill("demo", "demo", "", here, here, None, here / "SKILL.md", front.mapping, (), ())
    )
    assert request.problems == (), page
    assert request.asked, page
    schema = json.loads((ROOT / "schemas/skill-md.schema.json").read_text())
    jsonschema.validate(bare(front.mapping), schema, jsonschema.Draft7Validator)


@pytest.mark.parametrize(("page", "body"), titled("skillrun.yaml"))
def test_example_ceilings_are_read(page: str, body: str) -> None:
    """A skillrun.yaml that a page shows is read, and its schema takes it."""
    tree = read_yaml(body, path=Path("skillrun.yaml"))
    config_from_node(tree, Role.NAMED, Path("/project"))
    schema = json.loads((ROOT / "schemas/skillrun-yaml.schema.json").read_text())
    jsonschema.validate(bare(tree), schema, jsonschema.Draft7Validator)
    assert page


def test_every_yaml_example_is_one_or_the_other() -> None:
    """No YAML of a page is left unchecked."""
    kinds = {
        (page.name, block["title"])
        for page in PAGES
        for block in FENCE.finditer(page.read_text())
        if block["kind"] == "yaml" and block["title"] not in {"SKILL.md", "skillrun.yaml"}
    }
    assert kinds == set()


@pytest.mark.parametrize(
    ("shown", "real", "same"),
    [
        ((), [], True),
        ((), ["x"], False),
        (("a", "...", "d"), ["a", "b", "c", "d"], True),
        (("a", "...", "e"), ["a", "b", "c", "d"], False),
        (("run in …/work",), ["run in /tmp/1/work"], True),
        (("run in …/work",), ["run in /tmp/1/works"], False),
        (("a",), ["a", "b"], False),
    ],
)
def test_shown_lines_are_compared(shown: tuple[str, ...], real: list[str], same: object) -> None:
    """The comparison above lets through only what `...` and `…` stand for."""
    assert matches(shown, real) is same


def test_every_page_can_be_reached() -> None:
    """Each page is linked from the index or from a page that is."""
    reached, rest = set(), [ROOT / "docs" / "index.md"]
    while rest:
        page = rest.pop()
        if page in reached or not page.exists():
            continue
        reached.add(page)
        prose = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
        links = re.findall(r"\]\(([^)\s#]+\.md)[^)]*\)", prose)
        rest += [(page.parent / link).resolve() for link in links if "://" not in link]
    assert {page.relative_to(ROOT) for page in PAGES} <= {page.relative_to(ROOT) for page in reached}
