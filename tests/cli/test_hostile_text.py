"""Text from skills is data: no escape code, no bidirectional mark and no invisible character reaches the terminal."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from desk import Desk

EVIL = "a\u202eb\u2066c\u200bd\u00ade\U000e0041f\ufe0fg\u3164h\x9bi"
RAW = [character for character in EVIL if not character.isascii()]


def hostile(desk: Desk) -> str:
    """Make a skill that is hostile in its description, its paths, its script's name and its folder's name."""
    folder = desk.skill("demo", "#!/bin/sh\nexit 1\n")
    quoted = json.dumps(EVIL.replace("\x9b", ""), ensure_ascii=False)
    (folder / "SKILL.md").write_text(
        f"---\nname: demo\ndescription: {quoted}\nfs_read: [{quoted}]\nfs_write: [{quoted}]\n---\n",
        encoding="utf-8",
    )
    (folder / "scripts" / "main.sh").rename(folder / "scripts" / f"\x1b[2J{EVIL}.sh")
    folder.rename(folder.parent / f"\x1b[31m{EVIL}\n$(id)")
    return f"./skills/\x1b[31m{EVIL}\n$(id)"


@pytest.mark.slow
@pytest.mark.parametrize("colour", ["never", "always"])
def test_nothing_reaches_the_terminal_raw(desk: Desk, colour: str) -> None:
    """Every command that names the skill or its parts shows them escaped; colours are skillrun's own only."""
    name = hostile(desk)
    (desk.here / f"typed\x1b[1m{EVIL}").write_text("")
    for words in (
        ["list"],
        ["show", name],
        ["run", name, "--allow-unconfined", "--", f"typed\x1b[1m{EVIL}"],
        ["explain", name, "--read", f"\x1b]0;{EVIL}\x07"],
        ["run", f"\x1b[2J{EVIL}"],
        ["run", f"--\x1b[2J{EVIL}"],
        [f"\x1b[2J{EVIL}"],
    ):
        done = desk(
            *words, *(["--color", colour] if len(words) > 1 and not words[1].startswith("--") else [])
        )
        told = done.stdout + done.stderr
        if colour == "never":
            assert "\x1b" not in told, words
        assert "\x1b[2J" not in told
        assert "\x1b]" not in told
        assert not [hex(ord(character)) for character in RAW if character in told], words


@pytest.mark.parametrize("words", [["list", "--json"], ["show", "NAME", "--json"], ["run", "NAME", "--json"]])
def test_json_keeps_it_as_escapes(desk: Desk, words: list[str]) -> None:
    """A JSON document on a terminal is as harmless, and loses nothing."""
    name = hostile(desk)
    done = desk(*[name if word == "NAME" else word for word in words])
    assert not [character for character in RAW if character in done.stdout]
    assert "\x1b" not in done.stdout
    document = json.loads(done.stdout)
    if words[0] != "run":
        skill = document["skills"][0] if words[0] == "list" else document
        assert skill["description"] == EVIL.replace("\x9b", "")


def test_what_a_script_prints_can_not_be_hidden_in_a_receipt(desk: Desk) -> None:
    """A script's output in a Result is a string of JSON, whatever bytes it printed."""
    desk.skill("demo", "#!/bin/sh\nprintf '\\033[2J\\302\\233\\342\\200\\256\\377'\n")
    done = desk("run", "demo", "--json", "--allow-unconfined")
    assert "\x1b" not in done.stdout
    assert "\u202e" not in done.stdout
    assert json.loads(done.stdout)["stdout"]["text"] == "\x1b[2J\x9b\u202e\ufffd"
    os.fsencode(done.stdout)
