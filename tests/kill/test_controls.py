"""Controls: every adversary really gets away from a plain child process, so that catching it means something."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from adversaries import ADVERSARIES, Adversary, Control
from arena import eventually, plain

if TYPE_CHECKING:
    from arena import Arena


@pytest.mark.parametrize("adversary", ADVERSARIES, ids=lambda a: a.name)
def test_a_plain_child_process_is_not_enough(arena: Arena, adversary: Adversary) -> None:
    """Terminating, killing and reaping the child leaves something, or the child does not end when asked."""
    with plain(arena, arena.script(adversary.source)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        if adversary.control is Control.SILENT:
            assert process.stdout.read() == b"", "end of file"
            assert process.poll() is None
            return
        process.terminate()
        if adversary.control is Control.STUBBORN:
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.3)
            return
        try:
            process.wait(0.1)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        size = arena.beats()
        assert eventually(lambda: bool(arena.survivors()) or arena.beats() > size), "nothing was left"
