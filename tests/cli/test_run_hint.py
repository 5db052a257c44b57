"""The failed run of a skill that asks for nothing ends with the one command that would help."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import subprocess

    from desk import Desk

PREFIX = "skillrun:   skillrun run "


def hint(done: subprocess.CompletedProcess[str]) -> list[str] | None:
    """Return the words of the command that was suggested, None when none was."""
    lines = [line for line in done.stderr.splitlines() if line.startswith(PREFIX)]
    assert len(lines) <= 1
    return shlex.split(lines[0].removeprefix(PREFIX)) if lines else None


def test_the_command_that_is_suggested_works(confining: Desk) -> None:
    """A file outside the workspace: the suggested words, typed as they stand, make the run succeed."""
    confining.skill("demo", '#!/bin/sh\ncat "$1"\n')
    (confining.home / "a file").write_text("content\n")
    words = ["demo", "--", str(confining.home / "a file")]
    failed = confining("run", *words)
    assert failed.returncode == 1
    suggested = hint(failed)
    assert suggested == ["--read", str(confining.home / "a file"), *words]
    assert confining("run", *suggested).stdout == "content\n"


def test_a_path_that_is_not_there_yet_is_written(confining: Desk) -> None:
    """An output file is suggested for writing, and the suggestion works."""
    confining.skill("demo", '#!/bin/sh\necho made > "$1"\n')
    suggested = hint(confining("run", "demo", "--", "out.txt"))
    assert suggested == ["--write", "out.txt", "demo", "--", "out.txt"]
    assert confining("run", *suggested).returncode == 0
    assert (confining.here / "out.txt").read_text() == "made\n"


def test_a_path_that_could_be_read_is_written(confining: Desk) -> None:
    """What was typed could be read already, so writing it is what is left."""
    confining.skill("demo", '#!/bin/sh\necho more >> "$1"\n')
    (confining.here / "log").write_text("one\n")
    assert hint(confining("run", "demo", "--", "log")) == ["--write", "log", "demo", "--", "log"]


def test_without_a_path_the_workspace_is_read(confining: Desk) -> None:
    """A script that looks around in the folder it runs in."""
    confining.skill("demo", "#!/bin/sh\nls in.txt\n")
    (confining.here / "in.txt").write_text("")
    suggested = hint(confining("run", "demo"))
    assert suggested == ["--read", ".", "demo"]
    assert confining("run", *suggested).returncode == 0


def test_secrets_and_denied_paths_are_never_suggested(confining: Desk) -> None:
    """What a secret name or a deny line keeps away is in no suggestion, also beside other paths."""
    confining.skill("demo", '#!/bin/sh\ncat "$@" && false\n')
    (confining.home / ".ssh").mkdir()
    (confining.home / ".ssh" / "id").write_text("key\n")
    (confining.home / "plain").write_text("plain\n")
    (confining.here / ".env").write_text("key\n")
    (confining.here / "private").write_text("key\n")
    (confining.here / "skillrun.yaml").write_text("sandbox: {deny: [private]}\n")
    for secret in (str(confining.home / ".ssh" / "id"), ".env", "private"):
        done = confining("run", "demo", "--", secret)
        assert "key" not in done.stdout
        assert hint(done) is None
    plain = str(confining.home / "plain")
    suggested = hint(confining("run", "demo", "--", str(confining.home / ".ssh" / "id"), plain))
    assert suggested is not None
    assert suggested[: suggested.index("demo")] == ["--read", plain]


def test_nothing_is_suggested_where_it_would_not_help(confining: Desk) -> None:
    """A run that worked, a skill that asks for something, and a machine-readable run stay silent."""
    confining.skill("good", "#!/bin/sh\n")
    confining.skill("asking", "#!/bin/sh\nexit 1\n", front='fs_read: ["./data"]\n')
    confining.skill("failing", "#!/bin/sh\nexit 1\n")
    assert hint(confining("run", "good")) is None
    assert hint(confining("run", "asking")) is None
    assert hint(confining("run", "failing", "--json")) is None
    assert hint(confining("run", "failing")) == ["--read", ".", "failing"]


@pytest.mark.parametrize("name", ["x\x1b[2Jy.txt", "x\u202ey.txt", "x\ny.txt"])
def test_an_argument_that_can_not_be_shown_is_not_repeated(confining: Desk, name: str) -> None:
    """A file name that a glob of a hostile folder gives: what a terminal would not show as it is, is no suggestion."""
    confining.skill("demo", "#!/bin/sh\nexit 1\n")
    (confining.here / name).write_text("")
    done = confining("run", "demo", "--no-argument-grants", "--", name)
    assert done.returncode == 1
    assert hint(done) is None
    assert not {"\x1b", "\u202e"} & set(done.stderr)


@pytest.mark.parametrize(
    ("words", "script"),
    [
        pytest.param((), "#!/bin/sh\nkill -PIPE $$\n", id="its reader went away"),
        pytest.param(("--timeout", "0.3"), "#!/bin/sh\nexec sleep 20\n", id="it was ended"),
    ],
)
def test_who_lacked_nothing_is_told_nothing(confining: Desk, words: tuple[str, ...], script: str) -> None:
    """`skillrun run … | head` and a timeout are no reason to grant a script more."""
    confining.skill("demo", script)
    done = confining("run", *words, "demo")
    assert done.returncode != 0
    assert hint(done) is None
