"""Denials: what was kept from a script that failed, on which evidence, and the flag that would allow it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from arena import Faults

from skillrun import Flags, Result
from skillrun.launch.denials import MOST, suspects

if TYPE_CHECKING:
    from arena import Arena

LEVELS = ("level-1", "level-2")


def told(result: Result) -> list[tuple[str, str | None, str, str | None]]:
    """Give denials as plain values."""
    return [(one.operation, one.path and str(one.path), one.evidence, one.fix) for one in result.denials]


@pytest.mark.parametrize(
    ("stderr", "operation", "path"),
    [
        ("PermissionError: [Errno 13] Permission denied: '/a b/c'", "either", "/a b/c"),
        ("OSError: [Errno 30] Read-only file system: '/out/x'", "write", "/out/x"),
        (
            "FileNotFoundError: [Errno 2] No such file or directory: 'data/x.csv'",
            "missing",
            "/cwd/data/x.csv",
        ),
        ('PermissionError: [Errno 13] Permission denied: "/it\'s"', "either", "/it's"),
        ("Error: EACCES: permission denied, open '/x/y'", "either", "/x/y"),
        ("Error: ENOENT: no such file or directory, scandir '/x/y'", "missing", "/x/y"),
        ("cat: /etc/shadow: Permission denied", "either", "/etc/shadow"),
        ("cat: '/a b': No such file or directory", "missing", "/a b"),
        ("touch: cannot touch '/x/out': Read-only file system", "write", "/x/out"),
        ("touch: cannot touch \u2018/x/out\u2019: Permission denied", "either", "/x/out"),
        ("go.sh: 3: cannot create /x/out: Permission denied", "either", "/x/out"),
        ("go.sh: 3: cannot create out/x: Directory nonexistent", "missing", "/cwd/out/x"),
        ("go.sh: line 2: /x/out: Permission denied", "either", "/x/out"),
        ("Can't open perl script: /x: Permission denied", "either", "/x"),
        ("OSError: [Errno 101] Network is unreachable", "network", None),
        ("curl: (6) Could not resolve host: example.com", "network", None),
        ("socket.gaierror: [Errno -3] Temporary failure in name resolution", "network", None),
        ("Error: getaddrinfo EAI_AGAIN example.com", "network", None),
    ],
)
def test_what_programs_say(stderr: str, operation: str, path: str | None) -> None:
    """The words of Python, Node, shells and C programs, each with the path and what was tried."""
    found = {
        (one.operation, one.path and str(one.path))
        for one in suspects(f"before\n{stderr}\nafter", Path("/cwd"))
    }
    assert (operation, path) in found


@pytest.mark.parametrize("mode", LEVELS)
def test_a_denied_file_is_named_with_the_smallest_flag(arena: Arena, mode: str) -> None:
    """Reading and writing outside the grant: the path, a guess, the flag; and with the flag it works."""
    secret = arena.root / "elsewhere" / "data.txt"
    secret.parent.mkdir()
    secret.write_text("content")
    target = arena.root / "elsewhere" / "new.txt"
    arena.script(f"print(open({str(secret)!r}).read())", skill="reads")
    arena.script(f"open({str(target)!r}, 'w').write('x')", skill="writes")
    with arena.runner(mode) as runner:
        result = runner.run("reads")
        assert told(result) == [("read", str(secret), "guess", f"--read {secret}")]
        assert runner.run("reads", flags=Flags(read=(str(secret),))).stdout.text == "content\n"
        result = runner.run("writes")
        assert told(result) == [("write", str(target), "guess", f"--write {target}")]
        assert runner.run("writes", flags=Flags(write=(str(target),))).ok
    assert target.read_text() == "x"


@pytest.mark.parametrize("mode", LEVELS)
@pytest.mark.parametrize("name", [".env", ".ssh/id_ed25519", ".npmrc"])
def test_no_flag_is_told_for_a_secret(arena: Arena, mode: str, name: str) -> None:
    """A secret that was denied is named, and nothing says how to hand it over."""
    secret = arena.workspace / name
    secret.parent.mkdir(exist_ok=True)
    secret.write_text("hunter2")
    arena.script(f"print(open({str(secret)!r}).read())")
    with arena.runner(mode) as runner:
        assert told(runner.run("demo")) == [("read", str(secret), "guess", None)]


@pytest.mark.parametrize("mode", LEVELS)
@pytest.mark.parametrize("name", ["a[1].txt", "a*.txt", "~x", "$HOME"])
def test_a_path_that_no_flag_can_say_is_named_alone(arena: Arena, mode: str, name: str) -> None:
    """A name with the signs of a pattern is a denial without a flag; above all it is no error of the call."""
    data = arena.root / "elsewhere" / name
    data.parent.mkdir()
    data.write_text("content")
    arena.script(f"print(open({str(data)!r}).read())")
    with arena.runner(mode) as runner:
        result = runner.run("demo")
    assert [(one.operation, str(one.path)) for one in result.denials] == [("read", str(data))]


@pytest.mark.parametrize("mode", LEVELS)
def test_what_lies_in_proc_is_never_guessed_at(arena: Arena, mode: str) -> None:
    """`/proc/self` of a script is not ours: its words about it name nothing of this process."""
    words = "".join(f"[Errno 13] Permission denied: '/proc/self/fd/{n}'\n" for n in range(64))
    arena.script(f"import sys; sys.stderr.write({words!r}); sys.exit(1)")
    with arena.runner(mode) as runner:
        assert runner.run("demo").denials == ()


@pytest.mark.parametrize("mode", LEVELS)
def test_no_flag_is_told_for_a_protected_path(arena: Arena, mode: str) -> None:
    """What runs later unconfined can't be granted for writing, and is not suggested."""
    hooks = arena.out / ".git" / "hooks"
    hooks.mkdir(parents=True)
    arena.script(f"open({str(hooks / 'pre-commit')!r}, 'w')")
    with arena.runner(mode) as runner:
        result = runner.run("demo")
    assert [(one.operation, one.fix) for one in result.denials] == [("write", None)]


@pytest.mark.parametrize("mode", LEVELS)
def test_the_sandbox_is_not_blamed_for_what_it_allows(arena: Arena, mode: str) -> None:
    """Missing files, files nobody may read, lies, and failures of the script itself are no denials."""
    present = arena.workspace / "present.txt"
    present.write_text("x")
    faults = Faults()
    lies = (
        "open('missing.txt')",
        "open('no/such/folder/x')",
        f"sys.stderr.write('cat: {present}: No such file or directory'); sys.exit(1)",
        "sys.stderr.write('cat: /no/such/path/at/all: Permission denied'); sys.exit(1)",
        "sys.stderr.write('everything is broken'); sys.exit(1)",
        "open(os.environ['TMPDIR'] + '/nothing')",
        'sys.stderr.write("cat: /usr/bin/env: No such file or directory"); sys.exit(1)',
        "sys.stderr.write('x' * 5000 + \": Permission denied\"); sys.exit(1)",
        "sys.stderr.write(\"cat: '/a\\0b': Permission denied\"); sys.exit(1)",
    )
    with arena.runner(mode) as runner:
        for number, body in enumerate(lies):
            arena.script(f"import os, sys\n{body}", skill=f"lie-{number}")
            result = runner.run(f"lie-{number}")
            with faults.of(body):
                assert result.exit_code == 1
                assert told(result) == []
        # A script that ends well was kept from nothing, whatever it says.
        arena.script("import sys; sys.stderr.write('cat: /etc/shadow: Permission denied')", skill="fine")
        assert told(runner.run("fine")) == []
    faults.assert_none()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_the_sandbox_is_not_blamed_for_what_the_caller_may_not_read(arena: Arena) -> None:
    """A file that its owner keeps from everybody is not the sandbox's doing."""
    arena.script("open('/etc/shadow')")
    with arena.runner() as runner:
        assert told(runner.run("demo")) == []


@pytest.mark.parametrize("mode", LEVELS)
def test_the_network(arena: Arena, mode: str) -> None:
    """A script that finds no network is told to its operator as that, unless it was granted one."""
    arena.script("import socket\nsocket.create_connection(('192.0.2.1', 9), timeout=1)")
    with arena.runner(mode) as runner:
        assert told(runner.run("demo")) == [("network", None, "guess", "--network")]
        granted = runner.run("demo", flags=Flags(network=True))
    assert told(granted) == []


def test_thousands_of_complaints_are_a_few_denials(arena: Arena) -> None:
    """A script can't make its result large or slow by what it prints."""
    arena.script(
        "import sys\nfor n in range(20000): sys.stderr.write(f'cat: /etc/../etc/./x{n}: Permission denied\\n')\nsys.exit(1)"
    )
    with arena.runner() as runner:
        result = runner.run("demo")
    assert len(result.denials) <= MOST
    assert result.duration_s < 20


def test_nobody_is_blamed_without_a_sandbox(arena: Arena) -> None:
    """An unconfined run was denied nothing."""
    arena.script("import sys; sys.stderr.write('cat: /etc/hostname: Permission denied'); sys.exit(1)")
    with arena.runner("passthrough") as runner:
        result = runner.run("demo")
    assert json.dumps(told(result)) == "[]"


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "words",
    [
        "x",
        "`",
        "\N{LEFT SINGLE QUOTATION MARK}a",
        "[Errno 13] ",
        "[Errno 13] a: '",
        "EACCES: ",
        "socket ",
        "socket\n",
        "cannot create ",
    ],
)
def test_a_flood_of_words_is_looked_through_in_no_time(words: str) -> None:
    """A megabyte of one line without a space held its run up for hours, long after the script was dead."""
    started = time.process_time()
    assert len(list(suspects(words * (1_000_000 // len(words)), Path("/cwd")))) < 20_000
    assert time.process_time() - started < 10
