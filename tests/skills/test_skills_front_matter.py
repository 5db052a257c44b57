"""Front matter: fences, encodings, names, and the cases A-01 to A-08 and A-19 as far as reading goes."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from skillrun.errors import SkillError
from skillrun.problem import Severity
from skillrun.skills.front_matter import FrontMatter, read_front_matter
from skillrun.skills.node import Items, Mapping, Scalar

FILE = Path("/x/demo/SKILL.md")
GOOD = "name: demo\ndescription: d"


def read(text: str | bytes) -> FrontMatter:
    """Read a text as the SKILL.md of the skill `demo`."""
    return read_front_matter(text.encode() if isinstance(text, str) else text, path=FILE)


def rules(text: str | bytes) -> list[str]:
    """Return the rules of everything said about a text, without the common beginning."""
    try:
        problems = read(text).problems
    except SkillError as wrong:
        problems = wrong.problems
    return [problem.rule.removeprefix("front-matter-") for problem in problems]


def scalar(front: FrontMatter, key: str) -> object:
    """Return the value of a key that holds a scalar."""
    entry = front.mapping.get(key)
    assert entry is not None
    assert isinstance(entry.value, Scalar)
    return entry.value.value


# Each row: the bytes of a SKILL.md, and the rule that is told first ("" for a silent, valid reading).
ROWS: list[tuple[str | bytes, str]] = [
    (f"---\n{GOOD}\n---\n", ""),
    (f"---\n{GOOD}\n---", ""),
    (f"---\n{GOOD}\n---\nBody\n---\nmore\n", ""),
    (f"---\r\n{GOOD}\r\n---\r\nBody\r\n", ""),
    (f"---\r\n{GOOD}\n---\nBody\n", ""),
    (f"---\n{GOOD}\n---\r\n", ""),
    (f"\ufeff---\n{GOOD}\n---\n", ""),
    (f"\ufeff---\r\n{GOOD}\r\n---\r\n", ""),
    (f"---\n{GOOD}\n\n# note\n---\n", ""),
    (f"---\n\n{GOOD}\n---\n", ""),
    (f"---\n{GOOD}\nversion: 1.0\n---\n", ""),
    (f"---\n{GOOD}\nmetadata:\n  a: {{b: [c]}}\n---\n", ""),
    (f"---\n{GOOD}\nallowed-tools: Bash(git:*) Read\n---\n", ""),
    (f"---\n{GOOD}\ntags:\n- a\n- b\n---\n", ""),
    (f"---\n{GOOD}\nwhen: 2024-01-01\n---\n", ""),
    (f"---\n{GOOD}\nat: 12:30\n---\n", ""),
    (f"---\n{GOOD}\nemoji: 🛡️\n---\n", ""),
    (f"---\n{GOOD}\nlong: >-\n  one\n  two\n---\n", ""),
    (f"---\n{GOOD}\nlong: |\n  ---\n  two\n---\n", ""),
    (f"---\n{GOOD}\nlong: |\n  a --- b\n---\n", ""),
    (f"---\n{GOOD}\nurl: https://x.example/a?b=c#d\n---\n", ""),
    (f"---\n{GOOD}\nq: 'it''s'\n---\n", ""),
    (f'---\n{GOOD}\nq: "\\U0001F310 \\x41"\n---\n', ""),
    (f"---\n{GOOD}\na: &x [1]\nb: *x\n---\n", ""),
    (f"---\n{GOOD}\nbidi: \u202etxt\n---\n", ""),
    ("---\nname: yes\n---\n", ""),
    ("---\nname: on\n---\n", ""),
    ('---\nname: "8004"\n---\n', ""),
    ("", "empty-file"),
    ("\ufeff", "empty-file"),
    ("\n\n  \n", "empty-file"),
    ("\r\n", "empty-file"),
    ("# Title\n", "no-fence"),
    ("name: demo\n---\n", "no-fence"),
    (f"\ufeff\ufeff---\n{GOOD}\n---\n", "no-fence"),
    (f"````markdown\n---\n{GOOD}\n---\n", "no-fence"),
    (f" ---\n{GOOD}\n---\n", "no-fence"),
    (f"--\n{GOOD}\n--\n", "no-fence"),
    (f"+++\n{GOOD}\n+++\n", "no-fence"),
    (f"\n---\n{GOOD}\n---\n", "blank-line-before-fence"),
    (f"\r\n---\r\n{GOOD}\r\n---\r\n", "blank-line-before-fence"),
    (f"  \n\n---\n{GOOD}\n---\n", "blank-line-before-fence"),
    (f"<!-- c -->\n---\n{GOOD}\n---\n", "comment-before-fence"),
    (f"\n<!-- c\n-->\n---\n{GOOD}\n---\n", "comment-before-fence"),
    (f"--- \n{GOOD}\n---\n", "fence-not-exact"),
    (f"----\n{GOOD}\n----\n", "fence-not-exact"),
    (f"---yaml\n{GOOD}\n---\n", "fence-not-exact"),
    (f"---\t\n{GOOD}\n---\n", "fence-not-exact"),
    (f"---\r{GOOD}\r---\r", "fence-not-exact"),
    ("---", "unclosed"),
    ("---\n", "unclosed"),
    (f"---\n{GOOD}\n", "unclosed"),
    (f"---\n{GOOD}\n--- \n", "unclosed"),
    (f"---\n{GOOD}\n---# Title\n", "unclosed"),
    (f"---\n{GOOD}\n  ---\n", "unclosed"),
    (f"---\n{GOOD}\n----\n", "unclosed"),
    (f"---\n{GOOD}\n...\nText\n", "unclosed"),
    ("---\n---\n", "empty"),
    ("---\n# only this\n---\n", "empty"),
    ("---\n\n\n---\n", "empty"),
    ("---\ndescription: d\n---\n", "name-missing"),
    ("---\nname:\n---\n", "name-type"),
    ("---\nname: 5\n---\n", "name-type"),
    ("---\nname: true\n---\n", "name-type"),
    ("---\nname: [a]\n---\n", "name-type"),
    ("---\nname: {a: b}\n---\n", "name-type"),
    ("---\nname: a: b\n---\n", "yaml"),
    ("---\nname: @a\n---\n", "yaml"),
    ("---\nname: `a`\n---\n", "yaml"),
    ("---\nname: [a\n---\n", "yaml"),
    ('---\nname: "a\n---\n', "yaml"),
    ("---\nname: **a**\n---\n", "yaml"),
    ("---\nname: a\n\tb: c\n---\n", "yaml"),
    ("---\nname: a\n b: c\n---\n", "yaml"),
    ("---\n%YAML 1.1\nname: a\n---\n", "yaml"),
    ("---\nname: a\n...\nb: c\n---\n", "yaml"),
    ("---\nname: a\nname: b\n---\n", "duplicate-key"),
    ("---\nname: a\nm: {x: 1, x: 2}\n---\n", "duplicate-key"),
    ("---\nname: !!str a\n---\n", "tag"),
    ("---\nname: !env HOME\n---\n", "tag"),
    ("---\nname: *a\n---\n", "alias"),
    ("---\nname: {{NAME}}\n---\n", "key-not-scalar"),
    ("---\n- name\n---\n", "not-a-mapping"),
    ("---\nname demo\n---\n", "not-a-mapping"),
    ("---\nname: \x00\n---\n", "control-character"),
    ("---\nname: a\x1b[31m\n---\n", "control-character"),
    (f"---\n{GOOD}\rtrust: core\n---\n", "control-character"),
    (f"---\n{GOOD}\u2028trust: core\n---\n", "control-character"),
    (b"---\nname: caf\xe9\n---\n", "not-utf8"),
    (b"---\nname: a\n---\nBody \xff\n", "not-utf8"),
    (b"\xff\xfe-\x00-\x00-\x00", "not-utf8"),
    (f"---\n{GOOD}\n---\n" + "x" * (1 << 20), "too-large"),
    ('---\nname: a\nq: "one\ntwo"\n---\n', "indent"),
]


@pytest.mark.parametrize(("text", "first"), ROWS)
def test_every_row_is_read_or_said(text: str | bytes, first: str) -> None:
    """What is odd about a file is told under its rule; what is right is read in silence."""
    told = rules(text)
    assert (told[0] if told else "") == first


def test_the_rows_are_many() -> None:
    """The reader is covered without the corpus, which not every machine has."""
    assert len(ROWS) >= 60


def test_a_01_an_unquoted_colon_is_placed() -> None:
    """A-01: a colon in the description is an error with file, line, column, the YAML reason and the cure."""
    with pytest.raises(SkillError) as caught:
        read("---\nname: colon\ndescription: Converts tables: rows and columns\n---\n")
    problem = caught.value.problem
    assert problem.rule == "front-matter-yaml"
    assert str(problem.at) == f"{FILE}:3:29"
    assert "mapping values are not allowed" in problem.message
    assert problem.help is not None
    assert "quotes" in problem.help


def test_a_02_a_byte_order_mark_changes_nothing() -> None:
    """A-02: with the mark the file reads as without it, places included; a mark in a value stays."""
    text = "---\nname: bom\ndescription: d\ntimeout: 5\n---\nBody\n"
    assert read("\ufeff" + text) == read(text)
    assert scalar(read("---\nname: bom\nx: a\ufeffb\n---\n"), "x") == "a\ufeffb"


def test_a_03_windows_line_ends_change_nothing() -> None:
    """A-03: CRLF reads as its LF twin, and no value ends in a carriage return."""
    text = '---\nname: win\nfs_read: ["./data"]\nplain: ./data\nblock: |\n  a\n  b\ntimeout: 5\n---\nBody\n'
    assert read(text.replace("\n", "\r\n")) == read(text)
    assert scalar(read(text.replace("\n", "\r\n")), "block") == "a\nb\n"


def test_a_04_a_longer_line_is_no_fence() -> None:
    """A-04: four dashes at the margin inside a quoted value end nothing."""
    front = read('---\nname: rule\ndescription: "first\n----\nsecond"\ntimeout: 5\n---\nBody\n')
    assert scalar(front, "timeout") == 5
    assert scalar(front, "description") == "first ---- second"


def test_a_05_without_a_closing_fence_nothing_counts() -> None:
    """A-05: the body of a block that is never closed is not read as settings."""
    with pytest.raises(SkillError) as caught:
        read('---\nname: open\ndescription: d\n\nnetwork: true\nfs_write: ["/"]\n')
    assert caught.value.problem.rule == "front-matter-unclosed"
    assert "never closed" in caught.value.problem.message


def test_a_05_the_line_that_was_meant_is_named() -> None:
    """A closing fence with a blank behind it is pointed at."""
    with pytest.raises(SkillError) as caught:
        read(f"---\n{GOOD}\n--- \n")
    assert caught.value.problem.help is not None
    assert "line 4" in caught.value.problem.help


def test_a_06_a_rule_in_the_body_opens_nothing() -> None:
    """A-06: only the block at the start counts; keys between rules of the body are text."""
    front = read("---\nname: hr\nnetwork: false\n---\nText\n---\nnetwork: true\n---\nMore\n")
    assert scalar(front, "network") is False
    assert front.body_line == 5


@pytest.mark.parametrize("written", ["off", "no", '"false"', "on", "yes"])
def test_a_07_words_are_words(written: str) -> None:
    """A-07: `off`, `no`, `on`, `yes` and a quoted false are strings, whatever key they stand under."""
    front = read(f"---\nname: {written}\nnetwork: {written}\n---\n")
    assert front.text("name") == written.strip('"')
    assert scalar(front, "network") == written.strip('"')


def test_a_08_a_lone_string_stays_one_value() -> None:
    """A-08: a single path is one scalar, never its characters; lists and maps keep their shape and places."""
    front = read('---\nname: a\na: ./data\nb: "./a, ./b"\nc: {path: ./data}\nd: [./a, 5, null]\n---\n')
    assert scalar(front, "a") == "./data"
    assert scalar(front, "b") == "./a, ./b"
    third, fourth = front.mapping.get("c"), front.mapping.get("d")
    assert third is not None
    assert isinstance(third.value, Mapping)
    assert fourth is not None
    assert isinstance(fourth.value, Items)
    assert [item.value for item in fourth.value if isinstance(item, Scalar)] == ["./a", 5, None]


def test_a_17_every_key_keeps_its_spelling_and_place() -> None:
    """A-17: misspelled keys are kept as written, each with its place, for the request to report."""
    front = read(
        '---\nname: a\nmetadata:\n  skillrun:\n    fs-write: [./out]\n    Network: true\nfs_read: ["/"]\n---\n'
    )
    metadata = front.mapping.get("metadata")
    assert metadata is not None
    assert isinstance(metadata.value, Mapping)
    ours = metadata.value.get("skillrun")
    assert ours is not None
    assert isinstance(ours.value, Mapping)
    assert [(entry.key, entry.at.line, entry.at.column) for entry in ours.value] == [
        ("fs-write", 5, 5),
        ("Network", 6, 5),
    ]


def test_a_19_other_peoples_fields_are_read() -> None:
    """A-19: block scalars, lists and inline JSON of fields that are not ours load."""
    front = read(
        "---\nname: ext\ndescription: >-\n  two\n  lines\nread_when:\n  - a\n"
        'metadata: {"x":{"emoji":"\\U0001F310","bins":["node"]}}\nallowed-tools: Bash(git:*) Read\n---\n'
    )
    assert front.text("description") == "two lines"
    assert front.problems == ()


def test_places_are_those_of_the_file() -> None:
    """Lines count from the start of the file, the opening fence included."""
    entry = read("---\nname: a\nnetwork: true\n---\n").mapping.get("network")
    assert entry is not None
    assert (str(entry.at), str(entry.value.at)) == (f"{FILE}:3:1", f"{FILE}:3:10")
    assert entry.value.at.excerpt == "network: true"


def test_an_odd_name_is_a_warning() -> None:
    """A missing name makes no skill invalid (corpus), and is never silent."""
    assert [problem.severity for problem in read("---\ndescription: d\n---\n").problems] == [Severity.WARNING]


def test_ten_megabytes_are_refused_quickly() -> None:
    """A hostile size costs nothing."""
    began = time.perf_counter()
    assert rules(b"---\n" + b"a: b\n" * 2_000_000) == ["too-large"]
    assert time.perf_counter() - began < 1


@pytest.mark.parametrize(
    "text",
    [
        "---\n" + "\n".join(f"k{n}: v" for n in range(90_000)) + "\n---\n",
        "---\na: [" + "x," * 400_000 + "]\n---\n",
        "---\na: " + "\\" * 1_000_000 + "\n---\n",
        "---\n" + "---x\n" * 200_000,
        "---\na: " + "'" * 1_000_001 + "\n---\n",
        "---\n" + "? " * 500_000 + "\n---\n",
        "---\n" + "- " * 500_000 + "\n---\n",
        "---\n" + "&a " * 300_000 + "\n---\n",
        "---\n" + " \n" * 500_000 + "---\n",
        "---\na: " + "{" * 1_000_000 + "\n---\n",
    ],
    ids=[
        "keys",
        "items",
        "backslashes",
        "fences",
        "quotes",
        "question",
        "dashes",
        "anchors",
        "blanks",
        "braces",
    ],
)
@pytest.mark.timeout(30)
def test_a_megabyte_of_anything_ends_soon(text: str) -> None:
    """Nothing within the size limit takes time out of proportion to it."""
    began = time.perf_counter()
    rules(text)
    assert time.perf_counter() - began < 10


SEEDS = [text.encode() if isinstance(text, str) else text for text, _ in ROWS if len(text) < 2000]
PIECES = [b"---\n", b"\n", b"\r\n", b": ", b"- ", b"{", b"}", b"[", b"]", b"&a ", b"*a", b"!!", b'"', b"'", b"#", b"|\n", b">-\n",
          b"\t", b"  ", b"\x00", b"\xef\xbb\xbf", b"\xff", b"\xe2\x80\xa8", b"%YAML 1.1\n", b"...\n", b"? ", b"<<: ", b"name", b"9" * 500]  # fmt: skip


def mutated(chance: random.Random) -> bytes:
    """Make a hostile file: noise, pieces of YAML, or a good file with a few bytes changed."""
    kind = chance.random()
    if kind < 0.15:
        return chance.randbytes(chance.randrange(200))
    if kind < 0.45:
        return b"---\n" + b"".join(chance.choices(PIECES, k=chance.randrange(40))) + b"\n---\n"
    data = bytearray(chance.choice(SEEDS))
    for _ in range(chance.randrange(1, 6)):
        spot = chance.randrange(len(data) + 1)
        data[spot : spot + chance.choice((0, 0, 1, 3))] = chance.choice([*PIECES, chance.randbytes(1)])
    return bytes(data)


@pytest.mark.timeout(3600)
def test_fuzz_nothing_but_skill_errors() -> None:
    """Whatever the bytes are, they are read or refused with a placed problem; nothing else is raised, nothing hangs."""
    seed = int(os.environ.get("SKILLRUN_FUZZ_SEED", random.SystemRandom().randrange(2**32)))
    chance = random.Random(seed)
    for turn in range(int(os.environ.get("SKILLRUN_FUZZ", "2000"))):
        data = mutated(chance)
        where = f"SKILLRUN_FUZZ_SEED={seed} turn {turn}: {data!r}"
        began = time.perf_counter()
        try:
            problems = read(data).problems
        except SkillError as wrong:
            problems = wrong.problems
            assert problems, where
        except Exception as other:
            raise AssertionError(where) from other
        assert time.perf_counter() - began < 5, where
        for problem in problems:
            at = problem.at
            assert at is not None, where
            assert at.path == FILE, where
            lines = (
                data.removeprefix(b"\xef\xbb\xbf")
                .decode("utf-8", "replace")
                .replace("\r\n", "\n")
                .split("\n")
            )
            if at.line is not None:
                assert 1 <= at.line <= len(lines), where
                assert at.column is not None, where
                assert at.end_column is None or at.end_column > at.column >= 1, where
                assert at.excerpt is None or at.excerpt == lines[at.line - 1], where
