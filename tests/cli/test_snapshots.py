"""The exact words of help, list, show, explain and diagnostics, kept on file in `snapshots`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from desk import SKILLS

if TYPE_CHECKING:
    from collections.abc import Callable

    from desk import Desk

    Snapshot = Callable[[str, str], None]

BAD = """---
name: bad
description: >
  Something that is described
  over two lines.
fs_reads: ["/etc"]
fs_write: ./a, ./b
network: yes
timeout: -1
metadata:
  skillrun:
    tiemout: 5
---
"""


@pytest.mark.parametrize(
    "command",
    [
        "",
        "list",
        "show",
        "run",
        "batch",
        "explain",
        "profile",
        "audit",
        "check",
        "lock",
        "diff",
        "rule",
        "doctor",
        "mcp",
        "mcp-run",
        "init",
        "tools",
        "call",
        "chat",
        "pending",
        "approve",
        "deny",
        "answer",
        "settle",
    ],
)
def test_help(desk: Desk, snapshot: Snapshot, command: str) -> None:
    """The help of each command: sections, defaults, examples, exit codes."""
    words = [command, "--help"] if command else ["--help"]
    done = desk(*words, COLUMNS="80")
    assert (done.returncode, done.stderr) == (0, "")
    assert desk(*words[:-1], "-h", COLUMNS="80").stdout == done.stdout
    snapshot(f"help-{command or 'skillrun'}.txt", done.stdout)


@pytest.mark.parametrize("columns", ["100", "40"])
def test_list_of_the_examples(desk: Desk, snapshot: Snapshot, columns: str) -> None:
    """The list of the example skills, wide and narrow."""
    snapshot(f"list-{columns}.txt", desk("list", SKILLS, COLUMNS=columns).stdout)


def test_show_of_the_seed(confining: Desk, snapshot: Snapshot) -> None:
    """The deploy-checker under the default preset and under the ceiling of the README: asked, limited, granted."""
    for name, ceiling in (("default", "default"), ("readme", str(SKILLS / "ceiling.yaml"))):
        done = confining("show", str(SKILLS / "deploy-checker"), "--ceiling", ceiling, COLUMNS="300")
        assert (done.returncode, done.stderr) == (0, "")
        # What enforces it, and which Python there is, depend on the machine; how many names are secret, on the list.
        text = re.sub(r"(?s)besides: what the run needs.*", "", done.stdout)
        text = re.sub(r"and \d+ names", "and N names", text)
        snapshot(f"show-{name}.txt", re.sub(r"runs +/.*", "runs      PYTHON", text))


def test_explain_of_the_seed(desk: Desk, snapshot: Snapshot) -> None:
    """One answer of each kind."""
    text = ""
    for access, targets in (
        ("--read", ["data/x", "/etc/hosts", "data/.env"]),
        ("--write", ["out/x"]),
        ("--connect", ["a.b"]),
    ):
        text += desk("explain", str(SKILLS / "deploy-checker"), access, *targets, COLUMNS="300").stdout
    snapshot("explain.txt", text)


def test_diagnostics_of_a_bad_skill(desk: Desk, snapshot: Snapshot) -> None:
    """Everything that is wrong with a front matter, each with its line and carets."""
    folder = desk.skill("bad")
    (folder / "SKILL.md").write_text(BAD)
    done = desk("list")
    assert done.returncode == 1
    snapshot("diagnostics-skill.txt", done.stderr)


def test_diagnostics_of_a_bad_ceiling(desk: Desk, snapshot: Snapshot) -> None:
    """Everything that is wrong with a ceiling file."""
    desk.skill("demo")
    (desk.here / "ceiling.yaml").write_text(
        "sandbx: {}\nsandbox:\n  fs_reed: [.]\n  timeout: soon\n  require:\n  network: [https://x]\n"
    )
    done = desk("show", "demo", "--ceiling", "ceiling.yaml")
    assert done.returncode == 2
    snapshot("diagnostics-ceiling.txt", done.stderr)


def test_what_run_says(confining: Desk, snapshot: Snapshot) -> None:
    """The lines around a run of the seed under the default preset, the script's own left out."""
    done = confining("run", str(SKILLS / "deploy-checker"), "--", "--env", "staging")
    own = [line for line in done.stderr.splitlines() if line.startswith("skillrun: ")]
    snapshot("run.txt", re.sub(r"\[linux [^]]*\]", "[BACKEND]", "\n".join(own) + "\n"))
