"""Strict YAML: scalars by the 1.2 core rules, places, and everything that is refused."""

from __future__ import annotations

import math
import time
from pathlib import Path

import pytest

from skillrun.skills.node import Items, Mapping, Scalar
from skillrun.skills.strict_yaml import (
    ALIAS_LIMIT,
    DEPTH_LIMIT,
    SIZE_LIMIT,
    YamlProblem,
    core_scalar,
    decode_text,
    read_yaml,
)

FILE = Path("/x/skillrun.yaml")


def read(text: str) -> Mapping:
    """Read a text."""
    return read_yaml(text, path=FILE)


def value(text: str) -> object:
    """Return what a scalar means as the value of a key."""
    entry = read(f"key: {text}\n").get("key")
    assert entry is not None
    assert isinstance(entry.value, Scalar)
    return entry.value.value


def refusal(text: str) -> YamlProblem:
    """Return what is said against a text."""
    with pytest.raises(YamlProblem) as caught:
        read(text)
    return caught.value


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("off", "off"),
        ("y", "y"),
        ("true", True),
        ("True", True),
        ("TRUE", True),
        ("tRUE", "tRUE"),
        ("false", False),
        ("FALSE", False),
        ("null", None),
        ("Null", None),
        ("~", None),
        ("", None),
        ("nUll", "nUll"),
        ("2024-01-01", "2024-01-01"),
        ("2024-01-01T10:00:00Z", "2024-01-01T10:00:00Z"),
        ("1:30", "1:30"),
        ("12:30:45", "12:30:45"),
        ("1_000", "1_000"),
        ("0", 0),
        ("-7", -7),
        ("+7", 7),
        ("007", 7),
        ("0o17", 15),
        ("0x1F", 31),
        ("0b11", "0b11"),
        ("1.", 1.0),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("-1.5E-3", -0.0015),
        ("1.2.3", "1.2.3"),
        (".", "."),
        ("-", None),
        (".inf", math.inf),
        ("-.INF", -math.inf),
        ("inf", "inf"),
        ("nan", "nan"),
        ('"5"', "5"),
        ("'true'", "true"),
        ('""', ""),
        ("./data", "./data"),
        ("=", "="),
        ("<<", "<<"),
        ("1 2", "1 2"),
    ],
)
def test_scalars_follow_the_core_rules(written: str, meant: object) -> None:
    """A plain scalar means what YAML 1.2 says, a quoted one is a string; type and value both count."""
    if written == "-":
        root = read("key:\n  -\n").get("key")
        assert root is not None
        assert isinstance(root.value, Items)
        return
    got = value(written)
    assert (type(got), got) == (type(meant), meant)


def test_not_a_number_is_read_as_one() -> None:
    """`.nan` is the float, which readers of numbers then refuse by name."""
    got = core_scalar(".nan")
    assert isinstance(got, float)
    assert math.isnan(got)


def test_the_merge_key_is_an_ordinary_key() -> None:
    """`<<` merges nothing: a request could otherwise come from a place where nobody looks."""
    root = read("base: &b {network: true}\n<<: *b\n")
    assert [entry.key for entry in root] == ["base", "<<"]


def test_every_node_has_its_place() -> None:
    """Lines and columns count from 1 in the file, the excerpt is the line, the end is one past the last character."""
    root = read_yaml('a: 1\nlist:\n  - "x y"\n  - {b: cé}\n', path=FILE, first_line=2)
    first, second = root.entries
    assert (str(first.at), str(first.value.at)) == (f"{FILE}:2:1", f"{FILE}:2:4")
    assert isinstance(second.value, Items)
    quoted, flow = second.value.items
    assert (quoted.at.line, quoted.at.column, quoted.at.end_column) == (4, 5, 10)
    assert quoted.at.excerpt == '  - "x y"'
    assert isinstance(flow, Mapping)
    inner = flow.entries[0]
    assert (inner.at.column, inner.value.at.column, inner.value.at.end_column) == (6, 9, 11)


@pytest.mark.parametrize(
    ("text", "rule", "line", "column"),
    [
        ("a: 1\nb: c: d\n", "yaml-yaml", 2, 5),
        ("a: [1\n", "yaml-yaml", 1, 6),
        ("a: @x\n", "yaml-yaml", 1, 4),
        ("a: 1\n\tb: 2\n", "yaml-yaml", 2, 1),
        ("a: 1\na: 2\n", "yaml-duplicate-key", 2, 1),
        ("a: {b: 1, b: 2}\n", "yaml-duplicate-key", 1, 11),
        ('a: 1\n"a": 2\n', "yaml-duplicate-key", 2, 1),
        ("a: !!str 1\n", "yaml-tag", 1, 4),
        ("a: !x [1]\n", "yaml-tag", 1, 4),
        ("a: ! 1\n", "yaml-tag", 1, 4),
        ("!!map\na: 1\n", "yaml-tag", 1, 1),
        ("a: !!python/object/apply:os.system ['id']\n", "yaml-tag", 1, 4),
        ("a: *gone\n", "yaml-alias", 1, 4),
        ("a: &a [*a]\n", "yaml-alias", 1, 8),
        ("[a, b]: 1\n", "yaml-key-not-scalar", 1, 1),
        ("? {a: 1}\n: 1\n", "yaml-key-not-scalar", 1, 3),
        ("- a\n- b\n", "yaml-not-a-mapping", 1, 1),
        ("just words\n", "yaml-not-a-mapping", 1, 1),
        ("null\n", "yaml-not-a-mapping", 1, 1),
        ("", "yaml-empty", 1, 1),
        ("# only a comment\n", "yaml-empty", 1, 1),
        ("---\n...\n", "yaml-not-a-mapping", 2, 1),
        ("a: 1\n---\nb: 2\n", "yaml-yaml", 2, 1),
        ("a: 1\n...\nb: 2\n", "yaml-yaml", 3, 1),
        ("a: \x00\n", "yaml-control-character", 1, 4),
        ("a: b\n  \x1b[31m\n", "yaml-control-character", 2, 3),
        ("a: \x7f\n", "yaml-control-character", 1, 4),
        ("a: b\u2028c: d\n", "yaml-control-character", 1, 5),
        ("a: b\x85c: d\n", "yaml-control-character", 1, 5),
        ("a: b\rc: d\n", "yaml-control-character", 1, 5),
        ("a: \ud800\n", "yaml-control-character", 1, 4),
        ("a: " + "9" * 401 + "\n", "yaml-number", 1, 4),
    ],
)
def test_what_is_refused_is_placed(text: str, rule: str, line: int, column: int) -> None:
    """Everything that strict reading refuses names its rule, line and column."""
    problem = refusal(text).problem
    assert problem.at is not None
    assert (problem.rule, problem.at.line, problem.at.column) == (rule, line, column)


def test_a_long_run_of_digits_is_quick() -> None:
    """A number of a million digits is refused without computing it."""
    began = time.perf_counter()
    assert refusal("a: " + "9" * 1_000_000).problem.rule == "yaml-number"
    assert time.perf_counter() - began < 2


def test_all_that_is_wrong_is_told_at_once() -> None:
    """Several faults of one text are all told, so that a person mends the file once."""
    rules = [problem.rule for problem in refusal("a: 1\na: 2\nb: !x 1\n[c]: 1\n").problems]
    assert rules == ["yaml-duplicate-key", "yaml-tag", "yaml-key-not-scalar"]


def test_a_syntax_error_goes_first() -> None:
    """A text that is no YAML says so first: what was found before it may not mean anything."""
    rules = [problem.rule for problem in refusal("a: 1\na: 2\nb: c: d\n").problems]
    assert rules == ["yaml-yaml", "yaml-duplicate-key"]


def test_aliases_are_read() -> None:
    """A plain alias is fine, and stands for the node it names."""
    root = read("paths: &p [./a]\nmore: *p\n")
    assert root.entries[0].value is root.entries[1].value


def test_an_alias_bomb_is_refused() -> None:
    """Nine levels of nine aliases would stand for 400 million values; the reading stops early."""
    levels = ["l0: &l0 [x, x, x, x, x, x, x, x, x]"]
    levels += [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 10)]
    began = time.perf_counter()
    assert refusal("\n".join(levels)).problem.rule == "yaml-alias"
    assert time.perf_counter() - began < 1


def test_aliases_below_the_limit_are_read_and_above_it_not() -> None:
    """The limit counts values, not aliases."""
    read(f"a: &a x\nb: [{', '.join(['*a'] * ALIAS_LIMIT)}]\n")
    assert refusal(f"a: &a x\nb: [{', '.join(['*a'] * (ALIAS_LIMIT + 1))}]\n").problem.rule == "yaml-alias"


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_nesting_ten_thousand_deep_is_refused(opening: str) -> None:
    """Deep nesting ends in a problem, not in a full stack, and quickly."""
    began = time.perf_counter()
    assert refusal("a:\n  " + opening * 10_000).problem.rule == "yaml-depth"
    assert time.perf_counter() - began < 2


def test_depth_is_bounded_exactly() -> None:
    """The allowed depth is read, one more is not; an alias does not get around it."""
    lists = DEPTH_LIMIT - 1  # the map around them is the first level
    read("a: " + "[" * lists + "]" * lists)
    assert refusal("a: " + "[" * (lists + 1) + "]" * (lists + 1)).problem.rule == "yaml-depth"
    half = DEPTH_LIMIT // 2 + 1
    assert (
        refusal(f"a: &a {'[' * half}{']' * half}\nb: {'[' * half}*a{']' * half}").problem.rule == "yaml-depth"
    )


def test_a_byte_order_mark_inside_a_value_stays() -> None:
    """One leading mark is dropped by the decoding; a later one is text."""
    assert decode_text("\ufeff\ufeffx".encode(), path=FILE, rule="yaml") == "\ufeffx"
    assert value("a\ufeffb") == "a\ufeffb"


@pytest.mark.parametrize(
    ("data", "line", "column"),
    [(b"\xff\xfe\x80", 1, 1), (b"a: 1\nb: \xe9\xa9\n", 2, 4), ("é: ".encode() + b"\xff", 1, 4)],
)
def test_bytes_that_are_no_utf8_are_placed(data: bytes, line: int, column: int) -> None:
    """The first wrong byte is given by line and by column in characters."""
    with pytest.raises(YamlProblem) as caught:
        decode_text(data, path=FILE, rule="ceiling")
    at = caught.value.problem.at
    assert at is not None
    assert (caught.value.problem.rule, at.line, at.column) == ("ceiling-not-utf8", line, column)


def test_size_is_bounded_exactly() -> None:
    """A file of the limit is decoded, one byte more is not."""
    assert decode_text(b"x" * SIZE_LIMIT, path=FILE, rule="yaml")
    with pytest.raises(YamlProblem) as caught:
        decode_text(b"x" * (SIZE_LIMIT + 1), path=FILE, rule="yaml")
    assert caught.value.problem.rule == "yaml-too-large"


@pytest.mark.parametrize(
    ("text", "warned"),
    [
        ('a: "one\ntwo"\n', True),
        ('a: "one\n  two"\n', False),
        ("a:\n  b: 'one\n  two'\n", True),
        ("a:\n  b: 'one\n   two'\n", False),
        ('{a: "one\ntwo"}\n', False),
        ('a: "one\n\n  two"\n', False),
        ("a: >\n  one\n  two\n", False),
    ],
)
def test_a_quoted_value_left_of_its_map_is_a_warning(text: str, *, warned: bool) -> None:
    """Other YAML 1.2 readers refuse a quoted value that goes on without indentation: it is read, and said."""
    notes: list[object] = []
    read_yaml(text, path=FILE, notes=notes)  # type: ignore[arg-type]
    assert bool(notes) is warned


def test_pure_python_reading_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where PyYAML was built without libyaml, the tree and the places are the same."""
    import yaml

    text = 'a: 1\nb: [x, "y z", {c: &k no}]\nd: >\n  folded\n  text\ne: *k\n'
    fast = read(text)
    monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    assert read(text) == fast
