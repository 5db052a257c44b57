"""Access by argument: a declared parameter gives the one file that it names, and every way around that is an attack here."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from skillrun.errors import ConfigError, UsageError
from skillrun.permissions.access import NamedPath, Pin
from skillrun.running.call import Call
from skillrun.sandbox import landscape
from skillrun.tools.script_tool import script_tools

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import World

    from skillrun.tools.script_tool import ScriptTool

FRONT = """\
    metadata:
      skillrun:
        scripts:
          read.py:
            parameters:
              file: {type: string, arg: 1, access: read, default: default.txt}
              other: {type: string, arg: 2, required: false}
          write.py:
            parameters:
              file: {type: string, arg: 1, access: write}
          several.py:
            parameters:
              files: {type: array, items: {type: string}, arg: 1, access: read}
"""
SCRIPTS = {
    "read.py": "#!/usr/bin/env python3\nimport sys\nfor name in sys.argv[1:] or ['default.txt']:\n"
               "    try: print(open(name).read())\n    except OSError as e: print(type(e).__name__)\n",
    "write.py": "#!/usr/bin/env python3\nimport sys\nopen(sys.argv[1], 'w').write('written')\nprint('ok')\n",
    "several.py": "#!/usr/bin/env python3\nimport sys\nprint(*[open(name).read() for name in sys.argv[1:]])\n",
}  # fmt: skip
CEILING = """\
    sandbox:
      fs_read: ["${workspace}"]
      fs_write: ["${workspace}/out"]
      deny: ["kept/"]
"""


@pytest.fixture
def tools(world: World) -> dict[str, ScriptTool]:
    """Give the tools of a skill that asks for nothing but what its arguments name."""
    world.skill("demo", front=FRONT, scripts=SCRIPTS)
    world.file("a.txt", "content of a")
    world.file("b.txt", "content of b")
    world.file("default.txt", "content of the default")
    world.file("kept/k.txt", "KEPT")
    world.file(".env", "SECRET")
    (world.workspace / "out").mkdir()
    return {name.removeprefix("demo__"): tool for name, tool in world.tools(CEILING).items()}


def test_the_file_that_is_named_and_no_other(world: World, tools: dict[str, ScriptTool]) -> None:
    """The named file can be read; another argument without access names one in vain, and so does a default."""
    read = tools["read"]
    assert read.call({"file": "a.txt"}).text == "content of a"
    assert read.call({"file": str(world.workspace / "a.txt")}).text == "content of a"
    assert read.call({"file": "./a.txt"}).text == "content of a"
    both = read.call({"file": "a.txt", "other": "b.txt"})
    assert "content of b" not in both.text, "a parameter without `access` gave access"
    assert "content of the default" not in read.call({}).text, "a default was a grant"
    assert tools["several"].call({"files": ["a.txt", "b.txt"]}).text == "content of a content of b"


def test_a_control_reads_what_the_ceiling_would_allow(world: World, tools: dict[str, ScriptTool]) -> None:
    """The control: a skill that asks for the folder reads the same file, so it is the grant that decides."""
    world.skill("wide", front='fs_read: ["."]\n', scripts={"read.py": SCRIPTS["read.py"]})
    assert "content of b" in world.tools(CEILING)["wide__read"].call({"args": ["b.txt"]}).text
    assert tools


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/etc/passwd", "lies where this tool may not read"),
        ("../../../../etc/passwd", "has `..` in it"),
        ("out/../a.txt", "has `..` in it"),
        (".", "is a folder"),
        ("out", "is a folder"),
        ("link.txt", "is a link"),
        ("folder/passwd", "lies behind a link"),
        ("pipe", "is no regular file"),
        ("a.txt/x", "lies behind a link, or behind something that is no folder"),
        ("nothing.txt", "is not there"),
        (".env", "is kept from every script"),
        ("kept/k.txt", "is kept from every script"),
        ("~/x", "is not there"),
        ("", "is no path"),
        ("x" * 5000, "is no path"),
    ],
)
def test_what_an_argument_can_not_name(
    world: World, tools: dict[str, ScriptTool], path: str, reason: str
) -> None:
    """Outside of a root, links at the end and on the way, folders, pipes, secrets, denied paths: refused, nothing runs."""
    (world.workspace / "link.txt").symlink_to("/etc/passwd")
    (world.workspace / "folder").symlink_to("/etc")
    os.mkfifo(world.workspace / "pipe")
    outcome = tools["read"].call({"file": path})
    assert outcome.is_error
    assert reason in outcome.text
    assert outcome.result is None


def test_a_file_to_write(world: World, tools: dict[str, ScriptTool]) -> None:
    """One file beneath a write root, made if it is not there; nothing else in the folder may change."""
    assert tools["write"].call({"file": "out/new.txt"}).text == "ok"
    assert (world.workspace / "out/new.txt").read_text() == "written"
    outcome = tools["write"].call({"file": "a.txt"})
    assert "lies where this tool may not write" in outcome.text
    assert (world.workspace / "a.txt").read_text() == "content of a"


@pytest.mark.parametrize(
    "name",
    [
        ".git/hooks/pre-commit",
        ".GIT/hooks/x",
        "sub/.envrc",
        "CLAUDE.md",
        "claude.md",
        ".github/workflows/ci.yml",
        ".vscode/tasks.json",
    ],
)
def test_nothing_that_runs_by_itself_is_written(
    world: World, tools: dict[str, ScriptTool], name: str
) -> None:
    """`profiles/protected.yaml` holds for an argument as well, at any depth and in any letter case."""
    world.file(f"out/{name}", "before")
    outcome = tools["write"].call({"file": f"out/{name}"})
    assert "something runs or obeys later" in outcome.text
    assert (world.workspace / "out" / name).read_text() == "before"


def test_a_file_with_another_name_is_not_written(world: World, tools: dict[str, ScriptTool]) -> None:
    """A hard link in the write folder is the same file as one outside of it."""
    os.link(world.workspace / "a.txt", world.workspace / "out" / "hard.txt")
    assert "has another name" in tools["write"].call({"file": "out/hard.txt"}).text
    assert (world.workspace / "a.txt").read_text() == "content of a"


def test_a_file_that_is_swapped_in_between_is_not_opened(
    world: World, tools: dict[str, ScriptTool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the decision and the plan the file is replaced by another one: the run does not start."""
    survey = landscape.survey

    def swap(*given: object, **words: object) -> object:
        (world.workspace / "b.txt").replace(world.workspace / "a.txt")
        return survey(*given, **words)  # type: ignore[arg-type] # passed on as they came

    monkeypatch.setattr("skillrun.running.pipeline.survey", swap)
    outcome = tools["read"].call({"file": "a.txt"})
    assert outcome.is_error
    assert "content" not in outcome.text


def test_hold_compares_device_and_inode(tmp_path: Path) -> None:
    """The pin itself: another inode or none at all is an error."""
    spot = landscape.Spot(1, 2, folder=False)
    known = landscape.Landscape({tmp_path: spot}, {})
    landscape.hold([Pin(tmp_path, 1, 2)], known)
    for pin in (Pin(tmp_path, 1, 3), Pin(tmp_path, 2, 2), Pin(tmp_path / "x", 1, 2)):
        with pytest.raises(ConfigError, match="was replaced"):
            landscape.hold([pin], known)


def test_the_operator_can_take_it_away(world: World) -> None:
    """A ceiling that allows no reading leaves nothing that an argument could name, and the receipt names what it gave."""
    world.skill("demo", front=FRONT, scripts=SCRIPTS)
    world.file("a.txt", "content of a")
    assert world.tools("sandbox: {fs_read: []}\n")["demo__read"].call({"file": "a.txt"}).is_error
    result = world.tools(CEILING.replace("deny", "# deny"))["demo__read"].call({"file": "a.txt"}).result
    assert result is not None
    items = [
        (str(item.at), item.asked)
        for item in result.grant.granted
        if item.value == str(world.workspace / "a.txt")
    ]
    assert items == [("argument file", "a.txt")]


def test_the_operator_can_declare_it(world: World) -> None:
    """A skill that declares nothing: the operator's file says that an argument is a file to read, and it is granted."""
    world.skill("demo", scripts={"read.py": SCRIPTS["read.py"]})
    world.file("a.txt", "content of a")
    assert "content" not in world.tools(CEILING)["demo__read"].call({"args": ["a.txt"]}).text
    entry = "skills: {demo: {request: {scripts: {read.py: {parameters: {file: {arg: 1, access: read}}}}}}}\n"
    runner = world.runner(
        "sandbox: {fs_read: ['${workspace}']}\n" + entry, skills=[world.workspace / "skills"]
    )
    [tool] = script_tools(runner)[0]
    assert list(tool.input_schema["properties"]) == ["file"]
    assert tool.call({"file": "a.txt"}).text == "content of a"


@pytest.mark.parametrize("level2", [True, False])
def test_both_levels_give_the_one_file(world: World, level2: bool) -> None:
    """With namespaces and without: the named file and no sibling, and the receipt says at which level."""
    world.skill("demo", front=FRONT, scripts=SCRIPTS)
    world.file("a.txt", "content of a")
    world.file("b.txt", "content of b")
    world.file("out/keep.txt", "before")
    runner = world.runner(CEILING)
    probe = runner.launcher.probe()
    if not (probe.level2 or probe.landlock >= 3):
        pytest.skip("neither level is to be had here")
    runner.launcher.probe = lambda: replace(probe, level2=probe.level2 and level2)  # type: ignore[method-assign] # the seam of this test
    tools = {tool.name: tool for tool in script_tools(runner)[0]}
    both = tools["demo__read"].call({"file": "a.txt", "other": "b.txt"})
    assert "content of a" in both.text
    assert "content of b" not in both.text
    assert both.result is not None
    assert both.result.level == (2 if level2 and probe.level2 else 1)
    assert tools["demo__write"].call({"file": "out/new.txt"}).text == "ok"
    assert (world.workspace / "out" / "new.txt").read_text() == "written"


def test_a_refusal_names_the_parameter(world: World) -> None:
    """The error of the library has the rule, and the place is the argument."""
    folder = world.skill("demo", front=FRONT, scripts=SCRIPTS)
    with pytest.raises(UsageError) as caught:
        world.runner().run_call(Call(folder, "read.py", ("x",), named=(NamedPath("file", "/etc/passwd"),)))
    assert (caught.value.problem.rule, str(caught.value.problem.at)) == ("argument-access", "argument file")
