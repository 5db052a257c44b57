"""Scripts: what is listed, how each is started, and that a name never becomes a path (B-10 to B-14, B-20)."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from skillrun.errors import SkillError, UsageError
from skillrun.skills.model import Command, Script, Starter
from skillrun.skills.script_walk import DEPTH, ENTRY_LIMIT
from skillrun.skills.scripts import choose_script, find_scripts, read_command
from skillrun.skills.skill import read_skill

if TYPE_CHECKING:
    from collections.abc import Callable


def listed(folder: Path) -> dict[str, Script]:
    """Return the scripts of a skill by name."""
    return {script.name: script for script in find_scripts(folder)[0]}


def told(folder: Path) -> list[str]:
    """Return the rules of what is said about a skill's `scripts`."""
    return sorted(problem.rule for problem in find_scripts(folder)[1])


@pytest.mark.parametrize(
    ("head", "name", "command"),
    [
        (b"#!/bin/sh\n", "x.py", Command(Starter.SHEBANG, "/bin/sh")),
        (b"print(1)\n", "x.py", Command(Starter.EXTENSION, "python3")),
        (b"", "x.py", Command(Starter.EXTENSION, "python3")),
        (b"x", "X.PY", Command(Starter.EXTENSION, "python3")),
        (b"x", "x.sh", Command(Starter.EXTENSION, "bash")),
        (b"x", "x.mjs", Command(Starter.EXTENSION, "node")),
        (b"x", "x.R", Command(Starter.EXTENSION, "Rscript")),
        (b"x", "x.ps1", Command(Starter.EXTENSION, "pwsh", ("-NoProfile", "-File"))),
        (b"\x7fELF\x02\x01\x01", "tool", Command(Starter.NATIVE, "")),
        (b"\xcf\xfa\xed\xfe", "tool.py", Command(Starter.NATIVE, "")),
        (b"x", "x", None),
        (b"x", ".py", None),
        (b"x", "x.json", None),
        (b"\xef\xbb\xbf#!/bin/sh\n", "x", None),
    ],
)
def test_the_line_goes_before_format_before_name(head: bytes, name: str, command: Command | None) -> None:
    """Interpreter line, then executable format, then the ending of the name."""
    assert read_command(head, name) == (command, ())


def test_scripts_are_found_to_depth_three_in_byte_order(make_skill: Callable[..., Path]) -> None:
    """Names are paths below `scripts`; the fourth level is not looked at."""
    names = ["b.sh", "a/c.sh", "a/b/c.sh", "a/b/c/d.sh", "B.sh", "é.sh"]
    folder = make_skill("s", scripts=dict.fromkeys(names, "#!/bin/sh\n"))
    assert list(listed(folder)) == ["B.sh", "a/b/c.sh", "a/c.sh", "b.sh", "é.sh"]
    assert DEPTH == 3


def test_what_is_no_script_is_not_listed(make_skill: Callable[..., Path]) -> None:
    """Dot files, backups, data, caches and hidden folders are left out, without a word."""
    names = [
        ".hidden.py",
        "x.py~",
        "x.py.bak",
        "#x.py#",
        "data.json",
        "README.md",
        "a.tar.gz",
        "x.pyc",
        ".d/x.py",
    ]
    names += ["__pycache__/x.py", "node_modules/x.js", "noext", "x.py.swp"]
    folder = make_skill("s", scripts=dict.fromkeys(names, "x"))
    (folder / "scripts" / "data.json").chmod(0o755)
    assert listed(folder) == {}
    assert told(folder) == []


@pytest.mark.parametrize(
    ("name", "source", "tool"),
    [
        ("run.py", "import sys\nprint(sys.argv)\n", True),
        ("run.py", "def f():\n    pass\n\nif __name__ == '__main__':\n    f()\n", True),
        (
            "common.py",
            '"""Doc.\n\nprint(1)\n"""\nimport os\nX = 1\nY: int = 2\n\n\ndef f():\n    print(1)\n',
            False,
        ),
        ("common.py", "#!/usr/bin/env python3\ndef f(): pass\n", True),
        ("__init__.py", "", False),
        ("test_run.py", "#!/usr/bin/env python3\nprint(1)\n", False),
        ("run_test.py", "print(1)\n", False),
        ("conftest.py", "print(1)\n", False),
        ("tests/run.py", "print(1)\n", False),
        ("run.test.js", "x\n", False),
        ("types.d.ts", "x\n", False),
        ("latest.py", "print(1)\n", True),
    ],
)
def test_tests_and_libraries_are_no_tools(
    make_skill: Callable[..., Path], name: str, source: str, *, tool: bool
) -> None:
    """They are listed as `not a tool`, and still run by name."""
    skill = read_skill(make_skill("s", scripts={name: source}))
    assert skill.scripts[0].tool is tool
    assert choose_script(skill, name) is skill.scripts[0]


def test_b_10_an_executable_without_an_interpreter_line_is_explained(make_skill: Callable[..., Path]) -> None:
    """B-10: it is listed before any run with what is missing, and choosing it is a clear error."""
    folder = make_skill("s", scripts={"run": "echo hi\n", "empty": ""})
    for name in ("run", "empty"):
        (folder / "scripts" / name).chmod(0o755)
    skill = read_skill(folder)
    assert [(script.name, script.command, script.tool) for script in skill.scripts] == [
        ("empty", None, False),
        ("run", None, False),
    ]
    with pytest.raises(SkillError, match="no interpreter line"):
        choose_script(skill, "run")
    with pytest.raises(SkillError, match="is empty"):
        choose_script(skill, "empty")


def test_b_11_a_windows_line_end_is_told_before_the_run(make_skill: Callable[..., Path]) -> None:
    """B-11: the warning names the script and the line ends; it is still runnable."""
    script = listed(make_skill("s", scripts={"run": b"#!/bin/sh\r\necho hi\r\n"}))["run"]
    assert script.command == Command(Starter.SHEBANG, "/bin/sh")
    assert [problem.rule for problem in script.problems] == ["script-windows-line-end"]
    assert "`run`" in script.problems[0].message
    assert "Windows line end" in script.problems[0].message


def test_b_13_the_exec_bit_does_not_matter(make_skill: Callable[..., Path]) -> None:
    """B-13: 0644 is listed and startable as 0755 is, and the mode on disk stays as it was."""
    folder = make_skill("s", scripts={"plain.sh": "#!/bin/sh\n", "set.sh": "#!/bin/sh\n"})
    (folder / "scripts/plain.sh").chmod(0o644)
    (folder / "scripts/set.sh").chmod(0o755)
    scripts = listed(folder)
    assert scripts["plain.sh"].command == scripts["set.sh"].command
    assert (folder / "scripts/plain.sh").stat().st_mode & 0o777 == 0o644


def test_b_14_odd_paths_are_kept_whole(make_skill: Callable[..., Path]) -> None:
    """B-14: blanks, quotes, shell signs and Unicode in folder and file name reach the script's path unchanged."""
    folder = make_skill(
        "My Skills (v2) é中 $HOME `id`/demo", scripts={"go now.sh": "#!/bin/sh\n", "a'\"\n.sh": "#!/bin/sh\n"}
    )
    skill = read_skill(folder)
    assert choose_script(skill, "go now.sh").path == folder.resolve() / "scripts" / "go now.sh"
    assert {script.name for script in skill.scripts} == {"go now.sh", "a'\"\n.sh"}


def test_names_that_are_not_utf8_are_kept(make_skill: Callable[..., Path]) -> None:
    """A file name is bytes; one that is no text is listed and opens."""
    folder = make_skill("s", scripts={"a.sh": ""})
    name = os.fsdecode(b"caf\xe9.sh")
    (folder / "scripts" / name).write_text("#!/bin/sh\n")
    assert name in listed(folder)


@pytest.mark.parametrize(
    "name",
    [
        "/tmp/evil.py",
        "../../evil.py",
        "sub/../../evil.py",
        "../SKILL.md",
        "sub/../run.py",
        "scripts/../../evil.py",
        "",
        ".",
        "run.py\x00",
        "run.py/",
        "./../run.py",
    ],
)
def test_b_20_a_name_is_never_joined_to_a_path(
    make_skill: Callable[..., Path], tmp_path: Path, name: str
) -> None:
    """B-20: absolute paths, `..` and whatever is not in the table are refused, though the file is there."""
    skill = read_skill(make_skill("skills/s", scripts={"run.py": "print(1)\n", "sub/x.py": "print(1)\n"}))
    (tmp_path / "evil.py").write_text("print(1)\n")
    (tmp_path / "skills" / "evil.py").write_text("print(1)\n")
    with pytest.raises(UsageError):
        choose_script(skill, name)


def test_b_20_a_link_out_of_the_skill_is_refused_with_the_reason(
    make_skill: Callable[..., Path], tmp_path: Path
) -> None:
    """B-20: the link is not in the table, is reported, and choosing it says that it leaves the skill."""
    outside = tmp_path / "evil.py"
    outside.write_text("print(1)\n")
    folder = make_skill("s", scripts={"run.py": "print(1)\n"})
    (folder / "scripts/link.py").symlink_to(outside)
    skill = read_skill(folder)
    assert [script.name for script in skill.scripts] == ["run.py"]
    with pytest.raises(UsageError, match="links out of the skill"):
        choose_script(skill, "link.py")


def test_links_out_are_reported_without_their_target(make_skill: Callable[..., Path], tmp_path: Path) -> None:
    """Folders, files and `scripts` itself that link out are told; where they lead is not."""
    (tmp_path / "secret-place").mkdir()
    (tmp_path / "secret-place" / "x.py").write_text("print(1)\n")
    one, two = make_skill("one", scripts={"run.py": ""}), make_skill("two")
    (one / "scripts/lib").symlink_to("../../secret-place")
    (two / "scripts").symlink_to(tmp_path / "secret-place")
    for folder in (one, two):
        assert told(folder) == ["script-link-out"]
        assert "secret-place" not in find_scripts(folder)[1][0].message
        assert not any("x.py" in script.name for script in find_scripts(folder)[0])


def test_a_prefix_of_the_folders_name_is_outside(make_skill: Callable[..., Path]) -> None:
    """`/skills/demo-evil` is not inside `/skills/demo`: compared by component."""
    folder = make_skill("demo")
    other = make_skill("demo-evil", scripts={"x.py": "print(1)\n"})
    (folder / "scripts").mkdir()
    (folder / "scripts/x.py").symlink_to(other / "scripts/x.py")
    assert told(folder) == ["script-link-out"]


def test_links_inside_the_skill_are_followed_once(make_skill: Callable[..., Path]) -> None:
    """A link to a file or folder of the skill is a script of its own name; cycles end."""
    folder = make_skill("s", scripts={"run.py": "print(1)\n"})
    (folder / "lib").mkdir()
    (folder / "lib/tool.py").write_text("print(1)\n")
    (folder / "scripts/again.py").symlink_to("run.py")
    (folder / "scripts/lib").symlink_to("../lib")
    (folder / "scripts/loop").symlink_to(".")
    (folder / "lib/up").symlink_to("../scripts")
    (folder / "scripts/dead.py").symlink_to("nowhere")
    scripts = listed(folder)
    assert list(scripts) == ["again.py", "lib/tool.py", "run.py"]
    assert scripts["again.py"].path == folder.resolve() / "scripts/run.py"
    assert told(folder) == ["script-link-dead"]


@pytest.mark.timeout(10)
def test_fifos_sockets_and_devices_are_passed_by(make_skill: Callable[..., Path]) -> None:
    """Nothing that is no regular file is opened, let alone waited for."""
    folder = make_skill("s", scripts={"run.py": ""})
    os.mkfifo(folder / "scripts/fifo.py")
    (folder / "scripts/device.py").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(folder / "scripts")
        try:
            server.bind("sock.py")
        finally:
            os.chdir(here)
        assert list(listed(folder)) == ["run.py"]


@pytest.mark.timeout(10)
def test_scripts_that_is_no_folder_lists_nothing(make_skill: Callable[..., Path]) -> None:
    """A FIFO or file called `scripts` is neither opened nor a crash."""
    one, two = make_skill("one"), make_skill("two")
    os.mkfifo(one / "scripts")
    (two / "scripts").write_text("")
    assert find_scripts(one) == find_scripts(two) == ((), ())


def test_an_unreadable_script_is_told(ordinary: Path) -> None:
    """A script that can't be read is listed as not runnable, with the cause; a folder likewise."""
    folder = ordinary / "s"
    (folder / "scripts/closed").mkdir(parents=True)
    (folder / "scripts/run.py").write_text("")
    (folder / "scripts/run.py").chmod(0)
    (folder / "scripts/closed").chmod(0)
    scripts, problems = find_scripts(folder)
    assert [(script.name, script.command) for script in scripts] == [("run.py", None)]
    assert "Permission denied" in scripts[0].problems[0].message
    assert [problem.rule for problem in problems] == ["scripts-unreadable"]
    (folder / "scripts/closed").chmod(0o755)


def test_many_files_are_bounded(make_skill: Callable[..., Path]) -> None:
    """A flood of files ends in a problem, not in a long wait."""
    folder = make_skill("s", scripts={"a.sh": "#!/bin/sh\n"})
    for number in range(ENTRY_LIMIT + 1):
        (folder / "scripts" / f"{number}.json").touch()
    assert told(folder) == ["scripts-too-many"]


def test_one_script_needs_no_name(make_skill: Callable[..., Path]) -> None:
    """The only tool is meant when no name is given; tests beside it do not count."""
    skill = read_skill(make_skill("s", scripts={"run.py": "print(1)\n", "test_run.py": ""}))
    assert choose_script(skill, None).name == "run.py"
    assert choose_script(skill, "scripts/run.py").name == "run.py"
    assert choose_script(skill, "./run.py").name == "run.py"


def test_a_wrong_name_gets_the_nearest(make_skill: Callable[..., Path]) -> None:
    """Unknown names, and no name where several would do, say what there is."""
    skill = read_skill(make_skill("s", scripts={"extract.py": "print(1)\n", "merge.py": "print(1)\n"}))
    with pytest.raises(UsageError) as caught:
        choose_script(skill, "extrat.py")
    assert caught.value.problem.help == "did you mean `extract.py`?"
    with pytest.raises(UsageError, match=r"`extract.py`, `merge.py`"):
        choose_script(skill, None)
    with pytest.raises(UsageError, match="has no script"):
        choose_script(read_skill(make_skill("none")), None)


@pytest.mark.parametrize(
    "source",
    [
        "a: b\n" * 60_000,
        "a" * 250_000,
        "a, " * 80_000,
        '"' * 250_000,
        "'" * 250_001,
        '"""\\' * 60_000,
        "x: " * 80_000,
        "\n" * 250_000,
    ],
)
@pytest.mark.timeout(20)
def test_telling_a_library_takes_no_time(make_skill: Callable[..., Path], source: str) -> None:
    """A hostile source does not hold the listing up."""
    began = time.perf_counter()
    assert "x.py" in listed(make_skill("s", scripts={"x.py": source}))
    assert time.perf_counter() - began < 2
