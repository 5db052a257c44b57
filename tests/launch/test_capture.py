"""Capture: first and last half, cut between characters, everything counted, memory bounded."""

from __future__ import annotations

import itertools
import os
import re
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillrun.launch.capture import Keep
from skillrun.launch.pump import make_room

MARK = re.compile(r"\n\[… (\d+) bytes left out …\]\n")


def _pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    """Cut data at positions."""
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[a:b] for a, b in itertools.pairwise(places)]


@settings(max_examples=300, print_blob=True, deadline=None)
@given(
    data=st.text(alphabet=st.sampled_from("aé中😀\n\0"), max_size=120).map(str.encode),
    limit=st.integers(0, 80),
    cuts=st.lists(st.integers(0, 500), max_size=12),
)
def test_random_text_keeps_both_ends_and_never_half_a_character(
    data: bytes, limit: int, cuts: list[int]
) -> None:
    """Against slices of the whole: what is kept are true ends, complete characters, and honest counts."""
    keep = Keep(limit)
    for piece in _pieces(data, cuts):
        keep.feed(piece)
    kept = keep.captured()
    assert kept.bytes == len(data)
    assert kept.truncated == (len(data) > limit)
    if not kept.truncated:
        assert kept.text == data.decode()
        return
    (found,) = MARK.finditer(kept.text)
    head, tail = kept.text[: found.start()], kept.text[found.end() :]
    assert "\ufffd" not in head + tail
    assert data.decode().startswith(head)
    assert data.decode().endswith(tail)
    assert len(head.encode()) <= limit - limit // 2 < len(head.encode()) + 4
    assert len(tail.encode()) <= limit // 2 < len(tail.encode()) + 4
    assert int(found[1]) == len(data) - len(head.encode()) - len(tail.encode())


@settings(max_examples=200, print_blob=True, deadline=None)
@given(data=st.binary(max_size=200), limit=st.integers(0, 60), cuts=st.lists(st.integers(0, 500), max_size=8))
def test_random_bytes_always_become_text(data: bytes, limit: int, cuts: list[int]) -> None:
    """Anything can be printed: the text is valid Unicode, the count is the truth, cutting does not depend on pieces."""
    keep, whole = Keep(limit), Keep(limit)
    whole.feed(data)
    for piece in _pieces(data, cuts):
        keep.feed(piece)
    kept = keep.captured()
    kept.text.encode()
    assert kept == whole.captured()
    assert kept.bytes == len(data)
    assert kept.truncated == (len(data) > limit)
    if not kept.truncated:
        assert kept.text == data.decode("utf-8", "replace")


@pytest.mark.parametrize("size", [1, 2, 3, 1000, 65536, 200_000])
def test_memory_stays_near_the_limit_whatever_the_pieces(size: int) -> None:
    """Sixty thousand pieces of one byte cost no more than a few times the limit, large pieces hardly anything."""
    import tracemalloc

    limit = 20_000
    chunk = bytes(index % 251 for index in range(size))
    tracemalloc.start()
    keep = Keep(limit)
    for _ in range(max(20, min(60_000, 1_000_000 // size))):
        keep.feed(bytes(bytearray(chunk)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    per_piece = sys.getsizeof(b"") + 16
    assert peak < limit + limit // 2 * (1 + per_piece / size) + 2 * size + 50_000


def test_the_limit_is_kept_exactly() -> None:
    """`limit` bytes are whole, one more is a cut."""
    keep = Keep(11)
    keep.feed(b"hello world")
    assert keep.captured().text == "hello world"
    keep.feed(b"!")
    assert keep.captured().text == "hello \n[… 1 bytes left out …]\norld!"


def test_any_limit_can_be_set() -> None:
    """What could be kept is not taken before it comes: a limit far above this machine's memory is a limit."""
    keep = Keep(1 << 50)
    keep.feed(b"hello")
    assert keep.captured().text == "hello"


@pytest.mark.parametrize("more", [-1, 0, 1, 70_000])
@pytest.mark.parametrize("piece", [1 << 16, 99_991])
def test_what_is_kept_goes_on_over_blocks(piece: int, more: int) -> None:
    """A first half of some megabytes is in one piece again, whatever the pieces it came in."""
    data = bytes(index % 251 % 128 for index in range(3 * (1 << 20) + more))
    keep = Keep(2 * len(data))
    for start in range(0, len(data), piece):
        keep.feed(data[start : start + piece])
    assert keep.captured().text == data.decode()


def test_a_forked_copy_of_the_process_writes_elsewhere() -> None:
    """A host that forks while a run is under way finds its output as the script printed it."""
    keep = Keep(100)
    keep.feed(b"first ")
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.read(reading, 1)
        keep.feed(b"CHILD!")
        os._exit(0)
    keep.feed(b"parent")
    os.write(writing, b"x")
    os.waitpid(pid, 0)
    os.close(reading)
    os.close(writing)
    assert keep.captured().text == "first parent"


def test_a_forked_copy_of_the_process_reads_elsewhere() -> None:
    """What it reads does not come into the buffer that its parent is reading into."""
    room = make_room()
    room[:6] = b"parent"
    pid = os.fork()
    if pid == 0:
        room[:6] = b"CHILD!"
        os._exit(0)
    os.waitpid(pid, 0)
    assert bytes(room[:6]) == b"parent"
