"""Interpreter lines, `env` and `env -S` among them (B-11, C-33)."""

from __future__ import annotations

import os
import subprocess

import pytest

from skillrun.skills.model import Command, Starter
from skillrun.skills.shebang import LINE_LIMIT, LineError, parse_shebang, split_string


@pytest.mark.parametrize(
    ("line", "program", "args"),
    [
        ("#!/bin/sh", "/bin/sh", ()),
        ("#! /bin/sh", "/bin/sh", ()),
        ("#!\t/bin/sh  -eu  ", "/bin/sh", ("-eu",)),
        ("#!/bin/sh -e -u", "/bin/sh", ("-e", "-u")),
        ("#!/usr/bin/env python3", "python3", ()),
        ("#!/bin/env python3", "python3", ()),
        ("#!/usr/bin/env bash", "bash", ()),
        ("#!/usr/bin/env npx tsx", "npx", ("tsx",)),
        ("#!/usr/bin/env -- node", "node", ()),
        ("#!/usr/bin/env /opt/x/python", "/opt/x/python", ()),
        ("#!/usr/bin/env -S python3 -u", "python3", ("-u",)),
        ("#!/usr/bin/env -Spython3 -u", "python3", ("-u",)),
        ("#!/usr/bin/env -vS python3 -u", "python3", ("-u",)),
        ("#!/usr/bin/env --split-string=python3 -u", "python3", ("-u",)),
        ("#!/usr/bin/env -S -- python3 -u", "python3", ("-u",)),
        ("#!/usr/bin/env -S uv run --script", "uv", ("run", "--script")),
        (
            "#!/usr/bin/env -S uv run --python 3.14 --no-project",
            "uv",
            ("run", "--python", "3.14", "--no-project"),
        ),
        ("#!/usr/bin/env -S perl -e 'print qq(a b)'", "perl", ("-e", "print qq(a b)")),
        ("#!/usr/bin/env osascript -l JavaScript", "osascript", ("-l", "JavaScript")),
        ("#!/usr/bin/env -S node # comment", "node", ()),
    ],
)
def test_the_program_and_its_arguments(line: str, program: str, args: tuple[str, ...]) -> None:
    """C-33: what `env` would start is the program, with the arguments in front of the script."""
    assert parse_shebang(line.encode() + b"\nrest") == (Command(Starter.SHEBANG, program, args), False)


def test_b_11_a_windows_line_end_is_read_past() -> None:
    """B-11: the carriage return is no part of the interpreter's name, and is told."""
    assert parse_shebang(b"#!/bin/sh\r\necho hi\r\n") == (Command(Starter.SHEBANG, "/bin/sh"), True)


@pytest.mark.parametrize(
    ("line", "word"),
    [
        (b"#!\n", "names no"),
        (b"#!   \n", "names no"),
        (b"#!/usr/bin/env\n", "behind env"),
        (b"#!/usr/bin/env -S\n", "behind env"),
        (b"#!/usr/bin/env -S ''\n", "behind env"),
        (b"#!python3\n", "absolute"),
        (b"#!bin/python\n", "absolute"),
        (b"#!../x\n", "absolute"),
        (b"#!/usr/bin/env ./python\n", "whatever folder"),
        (b"#!/usr/bin/env bin/python\n", "whatever folder"),
        (b"#!/usr/bin/env -i python3\n", "-i"),
        (b"#!/usr/bin/env -S -u HOME python3\n", "-u"),
        (b"#!/usr/bin/env -S PYTHONPATH=/tmp python3\n", "sets the variable `PYTHONPATH`"),
        (b"#!/usr/bin/env LD_PRELOAD=/tmp/x.so python3\n", "sets the variable `LD_PRELOAD`"),
        (b"#!/usr/bin/env -S ${SHELL}\n", "environment"),
        (b"#!/usr/bin/env -S 'python3\n", "no end"),
        (b"#!/usr/bin/env -S python3 \\q\n", "means nothing"),
        (b"#!/bin/sh\x00-c\n", "control"),
        (b"#!/bin/sh\x1b[31m\n", "control"),
        (b"#!/bin/" + b"x" * LINE_LIMIT, "longer"),
    ],
)
def test_what_can_not_be_followed_says_why(line: bytes, word: str) -> None:
    """An interpreter line that would change the environment, or start something else than it names, is refused."""
    with pytest.raises(LineError, match=word):
        parse_shebang(line[:LINE_LIMIT])


SPLITS = [
    "a b  c",
    "a 'b c' d",
    'a "b c" d',
    r"a b\_c",
    r'"a\_b" c',
    r"a\tb c",
    r"'a\tb' 'c\'d'",
    r'"a\"b" x',
    "a # b c",
    "a#b c",
    "a 'b'\"c\"d",
    "a '' b",
    r"a b\c d",
    r"a \# b",
    r"a \$HOME b",
    r"'a\\b'",
]


@pytest.mark.parametrize("text", SPLITS)
def test_splitting_agrees_with_the_env_of_this_machine(text: str) -> None:
    """GNU env itself is the judge of `-S`: it starts a program that shows its arguments."""
    version = subprocess.run(["env", "--version"], capture_output=True, text=True, check=False).stdout
    if "GNU coreutils" not in version:
        pytest.skip("this machine's env is not GNU's")
    show = "import sys; print(ascii(sys.argv[1:]))"
    told = subprocess.run(
        ["env", "-S", f"python3 -c '{show}' {text}"],
        capture_output=True,
        text=True,
        check=True,
        env=dict(os.environ),
    )
    assert told.stdout.strip() == ascii(split_string(text))
