"""Round trip: random parsers and random arguments; what argparse receives equals what the caller passed.

The parser is written as source, so the one source is read by the inference and executed by the real argparse.
"""

from __future__ import annotations

import argparse  # noqa: TC003 - the source under test is executed with it
import os
import random
import string
from typing import Any

import jsonschema
import pytest

from skillrun.tools.argv import ArgumentFaultError, words_of
from skillrun.tools.infer.read import read_source

ROUNDS = int(os.environ.get("SKILLRUN_FUZZ", "1500"))
NASTY = [
    "", " ", "-", "--x", "-x", "-1", "--flag=1", "=", "a=b", "-a=b", "it's", '"', "a b", "-a b", "$(id)", "`id`", "*",
    "\n", "é", "日本", "@file", "-1e5", "-.5", "x" * 300, "--no-cache", "\\", "%s", "{}", "'\"'", ";rm", "--v", "-h",
]  # fmt: skip
TYPES = [None, "int", "float", "bool"]


def text(rng: random.Random) -> str:
    """Return a value that is often a nasty one."""
    if rng.random() < 0.6:
        return rng.choice(NASTY)
    return "".join(rng.choice(string.printable + "éß漢🙂") for _ in range(rng.randrange(12))).replace(
        "\0", ""
    )


def of_type(rng: random.Random, kind: str | None) -> Any:
    """Return a value of an argparse type."""
    match kind:
        case "int":
            return rng.choice([0, 1, -1, 10**12, -(10**12), rng.randrange(-999, 999)])
        case "float":
            return rng.choice([0.5, -0.25, 1e-7, -1e-9, 3.0, -2.0, 1e22, rng.uniform(-1e6, 1e6)])
        case "bool":
            return rng.random() < 0.5
        case _:
            return text(rng)


class Spec:
    """One random `add_argument`: its source, and what the script must see for a value."""

    def __init__(  # noqa: PLR0912 - one branch for each thing that argparse offers
        self, rng: random.Random, number: int, *, positional: bool, last: bool
    ) -> None:
        self.rng = rng
        self.positional = positional
        self.kind = rng.choice(TYPES)
        self.dest = f"{'p' if positional else 'o'}{number}"
        self.action = "store"
        self.nargs: Any = None
        extra = []
        if positional:
            self.nargs = rng.choice([None, None, 2, *(["?", "*", "+"] if last else [])])
        else:
            self.action = rng.choice(
                ["store", "store", "store", "append", "store_true", "count", "boolean", "extend"]
            )
            if self.action == "store":
                self.nargs = rng.choice([None, None, "?", "*", "+", 2, 1])
            elif self.action == "append":
                self.nargs = rng.choice([None, 2, "+"])
            elif self.action == "extend":
                self.nargs = "+"
        if self.nargs == "?" and self.kind == "bool":
            self.kind = None  # `true` could be the bare flag or the value
        self.choices = None
        if self.action == "store" and self.nargs is None and self.kind is None and rng.random() < 0.3:
            self.choices = ["red", "-green", "b l u e"]
            extra.append(f"choices={self.choices!r}")
        if self.kind and self.action in {"store", "append", "extend"}:
            extra.append(f"type={self.kind}")
        else:
            self.kind = None
        self.const = 77 if self.kind else "CONST"
        if self.nargs is not None:
            extra.append(f"nargs={self.nargs!r}")
        if self.nargs == "?" and not positional:
            extra.append(f"const={self.const!r}")
        if self.action != "store":
            word = "argparse.BooleanOptionalAction" if self.action == "boolean" else repr(self.action)
            extra.append(f"action={word}")
        if not positional and rng.random() < 0.2:
            extra.append(f"dest={('d_' + self.dest)!r}")
            self.target = "d_" + self.dest
        else:
            self.target = self.dest
        if positional:
            flags = [self.dest]
        else:
            long, short = f"--{self.dest}", f"-{string.ascii_letters[number]}"
            # A BooleanOptionalAction says false by its long flag only.
            flags = rng.choice(
                [[long], [short, long], [long, short], [long if self.action == "boolean" else short]]
            )
            if flags == [short] and self.target == self.dest:
                self.target = short[1:]
        self.property = (flags[0] if positional or len(flags) == 1 else long).lstrip("-")
        self.source = f"p.add_argument({', '.join([*map(repr, flags), *extra])})"

    def draw(self) -> tuple[Any, Any]:  # noqa: PLR0911 - one for each action
        """Return a value for the call, and what the script must see."""
        rng = self.rng
        one = lambda: rng.choice(self.choices) if self.choices else of_type(rng, self.kind)  # noqa: E731 - short
        count = self.nargs if isinstance(self.nargs, int) else rng.randrange(1, 4)
        several = [one() for _ in range(count)]
        match self.action:
            case "store_true":
                return True, True
            case "boolean":
                given = rng.random() < 0.5
                return given, given
            case "count":
                times = rng.randrange(1, 4)
                return times, times
            case "append" if self.nargs is None:
                return several, several
            case "append":
                lists = [[one() for _ in range(count)] for _ in range(rng.randrange(1, 3))]
                return lists, lists
        if self.nargs == "?" and not self.positional:
            value = one()
            return (True, self.const) if rng.random() < 0.3 else (value, value)
        if self.nargs in {None, "?"}:
            value = one()
            return value, value
        return several, several


def build(rng: random.Random) -> tuple[str, list[Spec]]:
    """Write a random parser."""
    optional = [Spec(rng, n, positional=False, last=False) for n in range(rng.randrange(6))]
    count = rng.randrange(4)
    positional = [Spec(rng, n, positional=True, last=n == count - 1) for n in range(count)]
    specs = [*optional, *positional]
    lines = ["import argparse", "p = argparse.ArgumentParser(add_help=False)"]
    return "\n".join([*lines, *(spec.source for spec in specs), "args = p.parse_args()"]), specs


def received(source: str, argv: list[str]) -> argparse.Namespace:
    """Run the real argparse on the words."""
    names: dict[str, Any] = {}
    exec(source.replace("p.parse_args()", "None"), names)
    return names["p"].parse_args(argv)  # type: ignore[no-any-return] # it is an ArgumentParser


def test_what_argparse_receives_is_what_was_passed() -> None:
    """Values that look like options, negative numbers, lists and booleans survive the trip, or are told as faults."""
    seed = int(os.environ.get("SKILLRUN_SEED", random.randrange(1 << 32)))
    print("seed", seed)
    rng = random.Random(seed)
    faults = 0
    for _ in range(ROUNDS):
        source, specs = build(rng)
        [interface] = read_source(source, "python").interfaces
        given = [s for s in specs if s.positional or rng.random() < 0.7]
        drawn = {spec.property: (spec, *spec.draw()) for spec in given}
        arguments = {name: value for name, (_, value, _) in drawn.items()}
        assert jsonschema.Draft202012Validator(interface.schema()).is_valid(arguments), (
            f"seed {seed}: {arguments}"
        )
        try:
            words = words_of(interface, arguments)
        except ArgumentFaultError:
            faults += 1
            continue
        got = vars(received(source, list(words.argv)))
        want = {spec.target: expected for spec, _, expected in drawn.values()}
        assert {name: got[name] for name in want} == want, f"seed {seed}\n{source}\n{arguments}\n{words.argv}"
        others = {name: value for name, value in got.items() if name not in want}
        assert not any(others.values()), f"seed {seed}: what was not given was received: {others}"
    assert faults < ROUNDS * 0.25, "too much is refused for this to be a round trip"


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("'--x', nargs='+'", ["-a", "-b"]),
        ("'--x', nargs='*'", ["a", "--b"]),
        ("'x', nargs='+'", ["a", "--"]),
        ("'--x'", "--"),
        ("'x'", "nul\0nul"),
        ("'x'", "half \ud800"),
    ],
)
def test_what_no_command_line_can_carry_is_a_fault(option: str, value: Any) -> None:
    """A value that the parser would read as something else is told, and nothing is passed."""
    source = f"import argparse\np = argparse.ArgumentParser()\np.add_argument({option})\np.parse_args()"
    [interface] = read_source(source, "python").interfaces
    with pytest.raises(ArgumentFaultError):
        words_of(interface, {"x": value})


def test_a_word_is_not_read_from_a_file() -> None:
    """`fromfile_prefix_chars` would read any file that the model names; such a value is refused."""
    source = (
        "import argparse\np = argparse.ArgumentParser(fromfile_prefix_chars='@')\np.add_argument('x')\n"
        "p.add_argument('--y')\np.parse_args()"
    )
    [interface] = read_source(source, "python").interfaces
    with pytest.raises(ArgumentFaultError, match="read a file"):
        words_of(interface, {"x": "@/etc/passwd"})
    assert words_of(interface, {"x": "a", "y": "@b"}).argv == ("--y=@b", "a")
