"""The algebra of rights: the laws that make an intersection trustworthy (DESIGN 5, law 1)."""

from __future__ import annotations

import itertools
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillrun.permissions.capabilities import Capabilities, Endpoint, Limits, Network, inside

if TYPE_CHECKING:
    from random import Random

EXAMPLES = int(os.environ.get("SKILLRUN_FUZZ", "1500")) // 10
LAWS = settings(max_examples=EXAMPLES, print_blob=True, deadline=None)

# A small world, so that random sets meet often: prefix siblings, a root, depth.
WORLD = [Path("/", *parts) for n in range(4) for parts in itertools.product(("a", "ab", "b"), repeat=n)]
HOSTS = [
    "example.org",
    "a.example.org",
    "b.a.example.org",
    "*.example.org",
    "*.a.example.org",
    "badexample.org",
    "10.0.0.5",
]
PORTS = [(443, 443), (1, 80), (80, 443), (81, 100), (400, 500)]

paths = st.frozensets(st.sampled_from(WORLD), max_size=4)
endpoints = st.builds(
    lambda host, ports: Endpoint(host, *ports), st.sampled_from(HOSTS), st.sampled_from(PORTS)
)
networks = st.builds(Network, st.booleans(), st.frozensets(endpoints, max_size=4))
numbers = st.sampled_from([1.0, 2.0, 30.0, math.inf])
limits = st.builds(Limits, numbers, numbers, numbers, numbers)
names = st.frozensets(st.sampled_from(["A", "B", "C"]))
rights = st.builds(Capabilities, paths, paths, networks, numbers, names, limits)


@LAWS
@given(rights, rights, rights)
def test_meet_is_a_semilattice(a: Capabilities, b: Capabilities, c: Capabilities) -> None:
    """`&` is idempotent, commutative and associative over whole values, not only over some field."""
    assert a & a == a
    assert a & b == b & a
    assert (a & b) & c == a & (b & c)


@LAWS
@given(rights, rights, rights)
def test_meet_is_the_greatest_lower_bound(a: Capabilities, b: Capabilities, c: Capabilities) -> None:
    """A meet is below both, and whatever is below both is below it."""
    assert a & b <= a
    assert a & b <= b
    lower = a & b & c
    assert lower <= a & b
    if c <= a and c <= b:
        assert c <= a & b


@LAWS
@given(rights, rights, rights)
def test_meet_is_monotone(a: Capabilities, b: Capabilities, c: Capabilities) -> None:
    """Asking for less, or allowing less, never gives more."""
    less = a & b
    assert less & c <= a & c
    assert not (less & c).fs_read - {p for p in WORLD if (a & c).allows_read(p)}


@LAWS
@given(rights, rights)
def test_meet_is_true_at_every_point(a: Capabilities, b: Capabilities) -> None:
    """A path, a host and port, a name is allowed by a meet exactly when both sides allow it."""
    both = a & b
    for path in WORLD:
        # Writing includes reading on each side, so a read may come of a write there.
        assert both.allows_read(path) == (a.allows_read(path) and b.allows_read(path)), path
        assert both.allows_write(path) == (a.allows_write(path) and b.allows_write(path)), path
    for host in HOSTS:
        name = host.replace("*", "deep.down")
        for port in (1, 80, 81, 400, 443, 444):
            assert both.network.allows(name, port) == (
                a.network.allows(name, port) and b.network.allows(name, port)
            )


@LAWS
@given(rights, rights)
def test_order_agrees_with_the_points(a: Capabilities, b: Capabilities) -> None:
    """`a <= b` holds exactly when b allows every path of this world that a allows, and as much of the rest."""
    by_points = all(
        (not a.allows_read(p) or b.allows_read(p)) and (not a.allows_write(p) or b.allows_write(p))
        for p in WORLD
    )
    rest = a.network <= b.network and a.timeout <= b.timeout and a.env <= b.env and a.limits <= b.limits
    # A root deeper than the world's last level cannot exist here, so the points decide.
    assert (a <= b) == (by_points and rest)


@LAWS
@given(st.lists(endpoints, max_size=5), st.randoms(use_true_random=False))
def test_a_network_has_one_form(lines: list[Endpoint], random: Random) -> None:
    """The order of lines, a repeated line, and a line that another covers make no difference."""
    shuffled = [*lines, *lines[:1]]
    random.shuffle(shuffled)
    left, right = Network(endpoints=frozenset(lines)), Network(endpoints=frozenset(shuffled))
    assert left == right
    assert hash(left) == hash(right)
    for line in lines:
        assert Network(endpoints=frozenset({line})) <= left


def test_writing_includes_reading() -> None:
    """A write root is a read root, and what lies below another root is not said twice."""
    made = Capabilities(frozenset({Path("/a/b/c")}), frozenset({Path("/a/b"), Path("/a/b/d")}))
    assert made.fs_write == {Path("/a/b")}
    assert made.fs_read == {Path("/a/b")}


def test_prefix_siblings_are_apart() -> None:
    """`/data` does not cover `/data2` (C-05); the root covers everything."""
    assert inside(Path("/data/x"), Path("/data"))
    assert not inside(Path("/data2"), Path("/data"))
    assert not inside(Path("/dat"), Path("/data"))
    assert inside(Path("/data"), Path("/"))


@pytest.mark.parametrize("path", ["data", "/a/../b", "./x"])
def test_only_physical_paths_become_rights(path: str) -> None:
    """A relative or climbing path is no right: it would mean something else elsewhere."""
    with pytest.raises(ValueError, match="physical"):
        Capabilities(frozenset({Path(path)}))


def test_a_doubled_root_is_the_root() -> None:
    """`//etc`, which pathlib keeps apart, is `/etc` (C-07)."""
    assert Capabilities(frozenset({Path("//etc")})).fs_read == {Path("/etc")}


def test_true_is_the_top_of_the_network_and_nothing_its_bottom() -> None:
    """`true` meets a list in the list, `false` in nothing; both order as expected."""
    some = Network(endpoints=frozenset({Endpoint("a.example.org")}))
    assert Network(everything=True) & some == some
    assert Network() & some == Network()
    assert Network() <= some <= Network(everything=True)
    assert not Network(everything=True) <= some
    assert not Network()
    assert some
