"""Words and widths that the renderers for people share."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillrun.permissions.grant import Capability
from skillrun.report.text import clip, fold, fold_items, width
from skillrun.report.words import near, permission, size


@pytest.mark.parametrize(("text", "columns"), [("abc", 3), ("大き", 4), ("e\u0301", 1), ("", 0)])
def test_width_counts_columns(text: str, columns: int) -> None:
    """Wide characters take two, combining marks none."""
    assert width(text) == columns


def test_clipping_keeps_within_the_columns() -> None:
    """Never wider than asked for, with a mark where something is missing."""
    assert clip("abcdef", 6) == "abcdef"
    assert clip("abcdef", 5) == "abcd…"
    assert clip("大きい", 5) == "大き…"
    assert width(clip("大きい", 4)) <= 4


def test_folding_leaves_paths_whole() -> None:
    """A long path is neither cut nor broken at a hyphen."""
    path = "/a-very/long-path/that-does/not-fit"
    assert fold(f"see {path} there", 20, indent="  ") == ["  see", f"  {path}", "  there"]
    assert fold("", 20, indent="  ") == [""]


def test_items_break_only_between_them() -> None:
    """Each item stays on one line, with commas at the ends."""
    assert fold_items(["read ./data", "write ./out", "network"], 30, first="  asks  ", indent=" " * 8) == [
        "  asks  read ./data,",
        "        write ./out, network",
    ]


@pytest.mark.parametrize(
    ("capability", "value", "words"),
    [
        (Capability.FS_READ, "./a\x1b", "read ./a\\x1b"),
        (Capability.FS_WRITE, "./out", "write ./out"),
        (Capability.NETWORK, True, "network"),
        (Capability.NETWORK, False, "no network"),
        (Capability.NETWORK, "a.example:443", "network a.example:443"),
        (Capability.TIMEOUT, 0.5, "timeout 0.5 s"),
        (Capability.ENV, "TZ", "env TZ"),
        (Capability.LIMITS, "memory=2147483648", "limit memory 2 GiB"),
        (Capability.LIMITS, "processes=256", "limit processes 256"),
        (Capability.TRUST, "core", "trust core"),
    ],
)
def test_permissions_in_words(capability: Capability, value: str | float | bool, words: str) -> None:  # noqa: FBT001 - a parameter
    """Each capability has a verb and its value in units that people use."""
    assert permission(capability, value) == words


def test_sizes_are_exact() -> None:
    """The largest unit that divides, so that nothing is rounded."""
    assert [size(n) for n in (0, 1023, 1024, 1536, 1 << 30, (1 << 30) + 1)] == [
        "0 bytes", "1023 bytes", "1 KiB", "1536 bytes", "1 GiB", f"{(1 << 30) + 1:g} bytes",
    ]  # fmt: skip


def test_near_is_by_components() -> None:
    """Only what lies below the base is written from there."""
    assert near(Path("/a/b/c"), Path("/a/b")) == "c"
    assert near(Path("/a/bc"), Path("/a/b")) == "/a/bc"
    assert near(Path("/a/b"), None) == "/a/b"
