"""Access by argument against what lies around the file: skills, repositories, programs, and what the kernel shows of others."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import World

FRONT = """\
    metadata:
      skillrun:
        scripts:
          read.py:
            parameters:
              file: {type: string, arg: 1, access: read}
          write.py:
            parameters:
              file: {type: string, arg: 1, access: write}
"""
SCRIPTS = {
    "read.py": "#!/usr/bin/env python3\nimport sys\nprint(open(sys.argv[1]).read())\n",
    "write.py": "#!/usr/bin/env python3\nimport sys\nopen(sys.argv[1], 'w').write('EVIL')\nprint('ok')\n",
}
CEILING = """\
    sandbox:
      fs_read: ["${workspace}"]
      fs_write: ["${workspace}"]
"""


@pytest.mark.parametrize(
    "name",
    [
        "skills/other/SKILL.md",
        "skills/other/scripts/x.py",
        "skills/other/new.txt",
        "skills/demo/SKILL.md",
        "skills/demo/scripts/read.py",
        ".git",
        "sub/.git",
        ".git/HEAD",
        ".git/index",
        ".git/new",
        "bare/config",
        "bare/hooks/post-receive",
        "bare/commondir",
        "bare/config.worktree",
        "bare/new",
        "lone/SKILL.md",
        "lone/deep/x.py",
        "fresh/SKILL.md",
        "myhooks/pre-commit",
        "pager.sh",
        "extra.cfg",
        "venv/bin/python",
        "venv/lib/site.py",
        "skillrun.yaml",
        "sub/skillrun.yaml",
    ],
)
def test_what_is_obeyed_later_is_not_written(world: World, name: str) -> None:
    """Files of skills and repositories, and programs that git is set to run, keep what is in them."""
    world.skill("demo", front=FRONT, scripts=SCRIPTS)
    world.skill("other", scripts={"x.py": "#!/usr/bin/env python3\nprint(1)\n"})
    subprocess.run(["git", "init", "-q", world.workspace], check=True)
    subprocess.run(["git", "init", "-q", "--bare", world.workspace / "bare"], check=True)
    for key, value in (
        ("core.hooksPath", "myhooks"),
        ("core.pager", "./pager.sh"),
        ("include.path", "../extra.cfg"),
    ):
        subprocess.run(["git", "-C", world.workspace, "config", key, value], check=True)
    for one in (
        "myhooks/pre-commit",
        "pager.sh",
        "extra.cfg",
        "lone/SKILL.md",
        "lone/deep/x.py",
        "venv/lib/site.py",
        "venv/bin/python",
    ):
        world.file(one, "before")
    world.file("venv/pyvenv.cfg", "home = /usr/bin\n")
    world.file("fresh/x", "")
    world.file("sub/x", "")
    path = world.workspace / name
    before = path.read_bytes() if path.is_file() else None
    outcome = world.tools(CEILING)["demo__write"].call({"file": name})
    after = path.read_bytes() if path.is_file() else None
    assert after == before, outcome.text


def test_the_control_writes_a_plain_file(world: World) -> None:
    """The control: the same call with a file that nothing obeys."""
    world.skill("demo", front=FRONT, scripts=SCRIPTS)
    assert world.tools(CEILING)["demo__write"].call({"file": "plain.txt"}).text == "ok"
    assert (world.workspace / "plain.txt").read_text() == "EVIL"


@pytest.mark.parametrize("what", ["environ", "cmdline", "maps"])
def test_nothing_of_another_process_is_read(world: World, what: str) -> None:
    """A ceiling that allows reading everything does not give the memory and environment of processes outside."""
    world.skill("demo", front=FRONT, scripts=SCRIPTS)
    tool = world.tools('sandbox: {fs_read: ["/"]}\n')["demo__read"]
    outcome = tool.call({"file": f"/proc/{os.getpid()}/{what}"})
    assert outcome.is_error, outcome.text
