"""Splitting a grant around what is kept, against a reference reading of Landlock.

Landlock's rule (landlock(7)): an access to a file is allowed when some rule on the file or on a folder above
it gives that right. So what a list of rules gives away is computed here path by path, over random trees.
"""

from __future__ import annotations

from pathlib import Path

from hypothesis import event, given, settings
from hypothesis import strategies as st

from skillrun.sandbox.landscape import Landscape, Spot
from skillrun.sandbox.linux.split import split
from skillrun.sandbox.policy import Access, Kept, PathRule

NAMES = ("a", "b", "ab")
TOP = Path("/w")
# What a word of the plan gives: listing folders, reading files, changing.
GIVES = {"list": {"list"}, "read": {"list", "read"}, "write": {"list", "read", "write"}}


@st.composite
def trees(draw: st.DrawFn) -> dict[Path, bool]:
    """Draw a tree below /w: each path with whether it is a folder. Always holds what lies above a path."""
    tree = {TOP: True}
    for words in draw(st.lists(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4), max_size=14)):
        path = TOP.joinpath(*words)
        above = [folder for folder in path.parents if folder == TOP or TOP in folder.parents]
        if all(tree.get(folder, True) for folder in above):
            tree.update(dict.fromkeys(above, True))
            tree.setdefault(path, draw(st.booleans()))
    return tree


@st.composite
def scenes(draw: st.DrawFn) -> tuple[dict[Path, bool], PathRule, list[Kept]]:
    """Draw a tree, a rule for a path of it, and what is kept: paths of the tree, above it, or not there."""
    tree = draw(trees())
    paths = sorted(tree)
    root = draw(st.sampled_from(paths))
    access = draw(st.sampled_from([Access.READ, Access.WRITE]))
    anywhere = st.one_of(
        st.sampled_from(paths),
        st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map(lambda words: TOP.joinpath(*words)),
    )
    kept = draw(st.lists(st.builds(Kept, anywhere, st.just("kept"), readable=st.booleans()), max_size=5))
    first: dict[Path, Kept] = {}
    for one in sorted(kept, key=lambda one: one.readable):  # a path that is both is hidden, as in a policy
        first.setdefault(one.path, one)
    return tree, PathRule(root, access, "granted"), list(first.values())


def landscape(tree: dict[Path, bool], rule: PathRule, kept: list[Kept]) -> Landscape:
    """Describe a tree as a survey does: entries only of the folders from the rule's path down to what is kept."""
    spots = {path: Spot(1, number, folder) for number, (path, folder) in enumerate(sorted(tree.items()))}
    entries: dict[Path, tuple[Path, ...]] = {}
    for one in kept:
        if one.path in spots and rule.path in one.path.parents:
            for folder in one.path.parents:
                if folder == rule.path or rule.path in folder.parents:
                    entries[folder] = tuple(sorted(path for path in tree if path.parent == folder))
    return Landscape(spots, entries)


def given_to(path: Path, rules: list[tuple[Path, str]]) -> set[str]:
    """Return the rights on a path, as the kernel adds them up from the path to the root."""
    return {right for at, word in rules if at == path or at in path.parents for right in GIVES[word]}


def at_or_above(path: Path, kept: list[Kept], tree: dict[Path, bool]) -> list[Kept]:
    """Return what is kept at a path or above it, as far as it is there."""
    return [one for one in kept if one.path in tree and (one.path == path or one.path in path.parents)]


@settings(max_examples=400, print_blob=True, deadline=None)
@given(scenes())
def test_nothing_that_is_kept_is_reachable(scene: tuple[dict[Path, bool], PathRule, list[Kept]]) -> None:
    """No right at all on what is hidden, none to write on what is protected, on it and on everything below."""
    tree, rule, kept = scene
    rules = list(split(rule, kept, landscape(tree, rule, kept)))
    for path, folder in tree.items():
        rights = given_to(path, rules) - ({"list"} if not folder else set())  # a file has no listing
        barriers = at_or_above(path, kept, tree)
        if any(not one.readable for one in barriers):
            assert rights == set(), (path, rules)
        if barriers:
            assert "write" not in rights, (path, rules)


@settings(max_examples=400, print_blob=True, deadline=None)
@given(scenes())
def test_everything_else_below_the_root_is_reachable(
    scene: tuple[dict[Path, bool], PathRule, list[Kept]],
) -> None:
    """Splitting costs only what it says: making and removing in the folders on the way, and listing some of them."""
    tree, rule, kept = scene
    rules = list(split(rule, kept, landscape(tree, rule, kept)))
    writes = rule.access is Access.WRITE
    barred = [one for one in kept if one.path in tree and (writes or not one.readable)]
    event(f"split in {min(len(rules), 4)}")
    for path, folder in tree.items():
        if path != rule.path and rule.path not in path.parents:
            assert given_to(path, rules) == set(), "nothing beside the root is given"
            continue
        rights = given_to(path, rules)
        barriers = at_or_above(path, barred, tree)
        hidden = any(not one.readable for one in barriers)
        holds = [one for one in barred if path in one.path.parents]
        if hidden:
            continue
        if not folder or not any(not one.readable for one in holds):
            assert "read" in rights, (path, rules)
        if writes and not barriers and (not folder or not holds):
            assert "write" in rights, (path, rules)
        if folder and not any(not one.readable and tree[one.path] for one in holds):
            assert "list" in rights, (path, rules)
        if holds:
            assert "write" not in rights, "a folder that holds something kept can't be changed itself"


@settings(max_examples=200, print_blob=True, deadline=None)
@given(scenes())
def test_each_path_is_tied_to_what_was_surveyed(
    scene: tuple[dict[Path, bool], PathRule, list[Kept]],
) -> None:
    """Every path of the plan is one that the survey saw, so that it can be compared when it is opened."""
    tree, rule, kept = scene
    seen = landscape(tree, rule, kept)
    for path, word in split(rule, kept, seen):
        assert path in seen.spots
        assert word in GIVES
        assert path == rule.path or rule.path in path.parents


def test_a_path_that_is_not_there_splits_nothing() -> None:
    """What does not exist can't be kept away by a rule; it is looked for after the run."""
    tree = {TOP: True, TOP / "a": False}
    rule = PathRule(TOP, Access.WRITE, "granted")
    kept = [Kept(TOP / ".git/hooks", "kept", readable=True)]
    assert list(split(rule, kept, landscape(tree, rule, kept))) == [(TOP, "write")]


def test_a_name_with_the_same_beginning_is_not_kept() -> None:
    """`/w/a` being kept keeps nothing of `/w/ab` (C-05)."""
    tree = {TOP: True, TOP / "a": True, TOP / "ab": True}
    rule = PathRule(TOP, Access.WRITE, "granted")
    kept = [Kept(TOP / "a", "kept", readable=False)]
    assert list(split(rule, kept, landscape(tree, rule, kept))) == [(TOP / "ab", "write")]
