"""What `skillrun run` prints: the script's bytes on stdout and stderr, and a few lines of its own around them."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from desk import Desk

BYTES = "#!/bin/sh\nprintf 'a\\000\\377\\033[31m\\r\\n'; printf 'x\\376' >&2\n"


def test_bytes_pass_through_unchanged(confining: Desk) -> None:
    """NUL, broken UTF-8 and escape codes of a script arrive as they were written, on both streams."""
    confining.skill("demo", BYTES)
    done = subprocess.run(
        confining.command("run", "demo"),
        cwd=confining.here,
        env=confining.environment(),
        capture_output=True,
        check=False,
    )
    assert done.stdout == b"a\0\xff\x1b[31m\r\n"
    assert done.stderr.endswith(b"\nx\xfe")


def test_output_goes_to_a_file_whole(confining: Desk, tmp_path: Path) -> None:
    """Three megabytes into a file: every byte, in order."""
    confining.skill("demo", "#!/bin/sh\nseq 1 450000\n")
    with (tmp_path / "out").open("wb") as file:
        subprocess.run(confining.command("run", "demo"), cwd=confining.here, env=confining.environment(),
                       stdout=file, stderr=subprocess.DEVNULL, check=True)  # fmt: skip
    assert (tmp_path / "out").read_text() == "".join(f"{n}\n" for n in range(1, 450001))


@pytest.mark.parametrize("command", ["run demo", "list", "list --json", "show demo --json", "--help"])
def test_a_reader_that_leaves_is_no_error(confining: Desk, command: str) -> None:
    """`| head -1`: no traceback, no complaint, and skillrun ends."""
    confining.skill("demo", "#!/bin/sh\nyes\n", front="license: " + "x" * 900 + "\n")
    for number in range(200):
        confining.skill(f"demo-{number}")
    words = " ".join(confining.command(*command.split()))
    done = subprocess.run(
        f"{words} 2> errors | head -c 3 | wc -c", shell=True, cwd=confining.here, env=confining.environment(),
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    told = (confining.here / "errors").read_text()
    assert done.stdout.strip() == "3"
    assert "Traceback" not in told
    assert "BrokenPipe" not in told


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_are_no_trap(confining: Desk, closed: str) -> None:
    """A stream that the caller closed is nowhere: its number is not reused for a file that output then lands in."""
    confining.skill("demo", "#!/bin/sh\nread line; echo out; echo err >&2; exit 5\n")
    words = " ".join(confining.command("run", "demo"))
    done = subprocess.run(
        f"{words} {closed}", shell=True, cwd=confining.here, env=confining.environment(), capture_output=True,
        text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 5
    assert done.stdout == ("" if ">&-" in closed.replace("2>&-", "") else "out\n")
    assert "Traceback" not in done.stderr


def test_the_line_before_the_start(confining: Desk) -> None:
    """One line names skill, script, what enforces and how much is granted; each cut is one more, with both places."""
    confining.skill(
        "demo",
        "#!/bin/sh\necho done\n",
        front='fs_read: ["."]\nfs_write: [./out]\nnetwork: true\ntimeout: 90\n',
    )
    lines = confining("run", "demo").stderr.splitlines()
    assert lines[0].startswith("skillrun: demo/main.sh [linux ")
    assert lines[0].endswith("] read:1 write:0 network:none")
    cuts = {
        line.split(" (")[0]: line for line in lines[1:] if ": narrowed: " in line or ": refused: " in line
    }
    assert sorted(cuts) == [
        "skillrun: narrowed: timeout 90 s to 60 s",
        "skillrun: refused: network: the ceiling allows no network",
        "skillrun: refused: write ./out: the ceiling lets it write nothing",
    ]
    assert cuts["skillrun: narrowed: timeout 90 s to 60 s"].endswith(
        "(asked at skills/demo/SKILL.md:7:10, limit at preset default)"
    )


def test_typed_arguments_are_shown_as_such(confining: Desk) -> None:
    """A file that is typed as an argument can be read and is shown `from argument`; the switch turns it off."""
    confining.skill("demo", '#!/bin/sh\ncat "$1"\n')
    (confining.here / "in.txt").write_text("content\n")
    done = confining("run", "demo", "--", "in.txt")
    assert (done.returncode, done.stdout) == (0, "content\n")
    assert done.stderr.splitlines()[0].endswith("read:1 write:0 network:none; from argument: read in.txt")
    kept = confining("run", "demo", "--no-argument-grants", "--", "in.txt")
    assert (kept.returncode, kept.stdout) == (1, "")
    assert "from argument" not in kept.stderr


def test_a_skill_that_asks_for_nothing_says_so_before_it_starts(confining: Desk) -> None:
    """The first run of somebody else's skill tells that it can touch only its own folder."""
    confining.skill("demo", "#!/bin/sh\necho done\n")
    assert (
        "it asks for nothing: of your files it can read its own folder and no other"
        in confining("run", "demo").stderr
    )
    asking = confining.skill("asking", "#!/bin/sh\necho done\n", front='fs_read: ["."]\n')
    assert "asks for nothing" not in confining("run", asking).stderr


def test_standard_input_is_what_was_said(confining: Desk) -> None:
    """Empty by default, whatever is piped in; a file or ours when asked for."""
    confining.skill("demo", "#!/bin/sh\ncat\n")
    (confining.here / "given").write_text("from a file\n")
    assert confining("run", "demo", stdin="piped\n").stdout == ""
    assert confining("run", "demo", "--stdin", "-", stdin="piped\n").stdout == "piped\n"
    assert confining("run", "demo", "--stdin", "given").stdout == "from a file\n"


def test_json_is_the_receipt(confining: Desk) -> None:
    """`--json` prints one document: output kept in it, guarantees, grant, and nothing else on stdout."""
    confining.skill("demo", '#!/bin/sh\nprintf \'{"answer": NaN, "lone": "\\\\ud800"}\'\necho err >&2\n')
    done = confining("run", "demo", "--json", "--", "a b")
    result = json.loads(done.stdout, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert result["schema"] == "skillrun.result/1"
    assert result["json"] == {"answer": None, "lone": "\ufffd"}
    assert result["stderr"] == {"text": "err\n", "bytes": 4, "truncated": False}
    assert result["argv"][-1] == "a b"
    assert result["guarantees"]["fs-read"] == "enforced"
    assert result["skill"]["path"] == str(confining.here / "skills" / "demo")
    assert done.stderr.startswith("skillrun: demo/main.sh [")


def test_flags_are_taken_from_where_the_caller_stands(confining: Desk) -> None:
    """`--read data` names the caller's `data`, also when the workspace is another folder; SKILL folders too."""
    folder = confining.skill("demo", '#!/bin/sh\ncat "$1"\n', root="elsewhere")
    (confining.here / "data").write_text("mine\n")
    (confining.here / "work").mkdir()
    done = confining(
        "run", "./elsewhere/demo", "--workspace", "work", "--read", "data", "--", str(confining.here / "data")
    )
    assert (done.returncode, done.stdout) == (0, "mine\n"), done.stderr
    assert confining("run", os.path.relpath(folder, confining.here / "work"), "--workspace", ".", "--read", "../data",
                     "--", str(confining.here / "data"), cwd=confining.here / "work").stdout == "mine\n"  # fmt: skip


def test_network_may_go_without_a_value(confining: Desk) -> None:
    """`--network` in front of the skill is the whole network and does not swallow the skill's name."""
    confining.skill("demo", "#!/bin/sh\necho done\n")
    for words in (["--network", "demo"], ["demo", "--network"], ["demo", "--network", "main.sh"]):
        done = confining("run", *words)
        assert done.stdout == "done\n"
        assert done.stderr.splitlines()[0].endswith("network:all")
