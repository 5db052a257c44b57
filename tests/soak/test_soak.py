"""Soak: very many runs of every kind, 16 at once, and nothing grows (`make soak`, SKILLRUN_SOAK runs)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

RUNS = int(os.environ.get("SKILLRUN_SOAK", "120"))
_GROWTH = 3 << 20  # bytes of resident memory that allocators may differ by between two looks


@pytest.mark.timeout(60 + RUNS)
@pytest.mark.parametrize("mode", ["level-1", "level-2"])
def test_nothing_grows(tmp_path: Path, mode: str) -> None:
    """Descriptors, threads, processes, folders and memory are after the last run what they were after the first part."""
    command = [sys.executable, str(Path(__file__).with_name("soaking.py")), mode, str(RUNS), str(tmp_path)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    told = json.loads(done.stdout)
    wrong, looks = told["wrong"], told["looks"]
    assert not wrong, f"{len(wrong)} of {RUNS}, such as {wrong[0]}"
    first, last = looks[0], looks[-1]
    grown = {name: (first[name], last[name]) for name in first if last[name] > first[name]}
    grown = {
        name: pair for name, pair in grown.items() if "memory" not in name or pair[1] - pair[0] > _GROWTH
    }
    assert not grown, grown
    assert last["zombies"] == last["scratch folders"] == 0
