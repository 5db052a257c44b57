"""Standard input: empty by default, whole when given, and no hostage of a script that does not read it."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest
from arena import MODES

from skillrun import Termination

if TYPE_CHECKING:
    from arena import Arena


@pytest.mark.parametrize("mode", MODES)
def test_a_script_that_waits_for_input_gets_its_end(arena: Arena, mode: str) -> None:
    """Case B-08: also when the caller's own stdin is a pipe that never closes."""
    arena.script('#!/bin/sh\nread x; echo "got:$x"\n', name="go.sh")
    reading, writing = os.pipe()
    saved = os.dup(0)
    os.dup2(reading, 0)
    try:
        with arena.runner(mode) as runner:
            before = time.monotonic()
            result = runner.run("demo", "go.sh", timeout=10)
            assert time.monotonic() - before < 1
    finally:
        os.dup2(saved, 0)
        for descriptor in (reading, writing, saved):
            os.close(descriptor)
    assert (result.exit_code, result.stdout.text) == (0, "got:\n")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", [1, 65536, 65537, 5_000_000])
def test_input_comes_whole(arena: Arena, mode: str, size: int) -> None:
    """Every byte that is given arrives, and then the end."""
    arena.script("import sys\ndata = sys.stdin.buffer.read()\nprint(len(data), sum(data))\n")
    data = bytes(index % 251 for index in range(size))
    with arena.runner(mode) as runner:
        result = runner.run("demo", "go.py", stdin=data, timeout=20)
    assert result.stdout.text == f"{size} {sum(data)}\n"
    arena.assert_clean()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "line", ["exit 5", "exec <&-; sleep 0.2; exit 5", "head -c 10 >/dev/null; sleep 0.2; exit 5"]
)
def test_input_that_nobody_reads_holds_nothing(arena: Arena, mode: str, line: str) -> None:
    """20 MB for a script that exits, closes its stdin, or reads ten bytes: its own end is the result."""
    arena.script(f"#!/bin/sh\n{line}\n", name="go.sh")
    with arena.runner(mode) as runner:
        result = runner.run("demo", "go.sh", stdin=b"x" * 20_000_000, timeout=20)
    assert (result.termination, result.exit_code, result.error) == (Termination.EXITED, 5, None)
    assert result.duration_s < 1.5
    arena.assert_clean()


@pytest.mark.parametrize("mode", MODES)
def test_input_and_output_larger_than_every_pipe(arena: Arena, mode: str) -> None:
    """`cat`: neither side waits for the other for ever."""
    arena.script("#!/bin/sh\nexec tee /dev/null\n", name="go.sh")
    with arena.runner(mode) as runner:
        result = runner.run("demo", "go.sh", stdin=b"x" * 3_000_000, timeout=20)
    assert (result.exit_code, result.stdout.bytes) == (0, 3_000_000)
    arena.assert_clean()
