"""Assemble the system-call filter from `profiles/linux/seccomp.yaml`: data in, classic BPF out.

The program is an array of struct sock_filter (8 bytes: code, jump if true, jump if false, value). It
checks the architecture first, because a number means another call there, then x32, then looks the
number up in a binary tree: the kernel runs the program over every number when it is loaded, so a list
would cost twice as much at each start.
"""

from __future__ import annotations

import errno
import functools
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from skillrun import resources

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

# <linux/audit.h> AUDIT_ARCH_*; the column of syscalls.yaml.
ARCHITECTURES: Final = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
# <linux/seccomp.h>
_ALLOW: Final = 0x7FFF0000
_KILL_PROCESS: Final = 0x80000000
_ERRNO: Final = 0x00050000
# <linux/bpf_common.h>
_LOAD, _EQUAL, _AT_LEAST, _BITS, _RETURN, _AND, _JUMP = 0x20, 0x15, 0x35, 0x45, 0x06, 0x54, 0x05
# Offsets in struct seccomp_data: number, architecture, low half of an argument (both are little-endian).
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_X32: Final = 0x40000000
# file_setattr, Linux 6.17: the newest call that the table was written with in mind; programs expect ENOSYS of newer ones.
_LAST_KNOWN: Final = 469
_REACH = 255  # instructions a conditional jump can skip: eight bits


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a filter is assembled for."""

    machine: str
    level: int
    network: bool
    signals_scoped: bool
    unix: bool = True


@functools.lru_cache(maxsize=32)  # the try of level 2 and the first run after it need the same one
def assemble(conditions: Conditions) -> bytes:
    """Return the filter program for a machine, a level and a network grant.

    Raises KeyError for a machine that the tables do not know: no filter is better than a wrong one.
    """
    audit, column = ARCHITECTURES[conditions.machine]
    numbers: Mapping[str, Sequence[int | None]] = resources.table("linux/syscalls")
    program = [
        _instruction(_LOAD, value=_ARCHITECTURE),
        _instruction(_EQUAL, true=1, value=audit),
        _instruction(_RETURN, value=_KILL_PROCESS),
        _instruction(_LOAD, value=_NUMBER),
    ]
    if conditions.machine == "x86_64":
        program += [
            _instruction(_AT_LEAST, false=1, value=_X32),
            _instruction(_RETURN, value=_ERRNO | errno.ENOSYS),
        ]
    program += [
        _instruction(_AT_LEAST, false=1, value=_LAST_KNOWN + 1),
        _instruction(_RETURN, value=_ERRNO | errno.ENOSYS),
    ]
    leaves: dict[int, list[bytes]] = {}
    for rule in resources.table("linux/seccomp"):
        if applies(rule, conditions):
            for name in rule["calls"]:
                number = numbers[name][column]
                if number is not None:
                    leaves.setdefault(number, []).extend(_rule(rule))
    program += _tree(sorted(leaves.items()))
    return b"".join(program)


def applies(rule: Mapping[str, Any], conditions: Conditions) -> bool:
    """Tell whether a rule of the table is part of a filter for these conditions."""
    network = {"none": not conditions.network, "any": conditions.network}
    return (
        conditions.level in rule.get("levels", (1, 2))
        and network.get(rule.get("network", ""), True)
        and (rule.get("signals") != "open" or not conditions.signals_scoped)
        and (rule.get("unix") != "closed" or not conditions.unix)
    )


def _tree(leaves: Sequence[tuple[int, list[bytes]]]) -> list[bytes]:
    """Assemble a search for the number in the accumulator; what is not found is allowed."""
    if len(leaves) == 1:
        number, rules = leaves[0]
        allow = _instruction(_RETURN, value=_ALLOW)
        return [_instruction(_EQUAL, true=1, value=number), allow, *rules, allow]
    middle = len(leaves) // 2
    below, above = _tree(leaves[:middle]), _tree(leaves[middle:])
    pivot = leaves[middle][0]
    if len(below) <= _REACH:
        return [_instruction(_AT_LEAST, true=len(below), value=pivot), *below, *above]
    far = _instruction(_JUMP, value=len(below))
    return [_instruction(_AT_LEAST, false=1, value=pivot), far, *below, *above]


def _rule(rule: Mapping[str, Any]) -> list[bytes]:
    """Assemble what one rule does with its calls; when its conditions do not hold, what follows decides."""
    answer = 0 if rule["answer"] == "ok" else getattr(errno, rule["answer"])
    block = [_instruction(_RETURN, value=_ERRNO | answer)]
    for condition in reversed(rule.get("when", ())):
        block = _guard(_test(condition), block)
    return block


def _test(condition: Mapping[str, Any]) -> list[tuple[int, int, bool]]:
    """Turn a condition into loads and comparisons: (code, value, whether a match means that it holds)."""
    steps = [(_LOAD, _ARGUMENTS + 8 * condition["arg"], True)]
    if "and" in condition:
        steps.append((_AND, condition["and"], True))
    if "bits" in condition:
        steps.append((_BITS, condition["bits"], True))
    steps += [(_EQUAL, value, True) for value in condition.get("in", ())]
    steps += [(_EQUAL, value, False) for value in condition.get("not_in", ())]
    return steps


def _guard(test: Iterable[tuple[int, int, bool]], inner: list[bytes]) -> list[bytes]:
    """Run `inner` only if the test holds, else go on behind it."""
    steps = list(test)
    loads = [step for step in steps if step[0] in {_LOAD, _AND}]
    compares = [step for step in steps if step[0] not in {_LOAD, _AND}]
    wanted = compares[0][2]
    assembled = [_instruction(code, value=value) for code, value, _ in loads]
    for place, (code, value, _) in enumerate(compares):
        rest = len(compares) - place - 1
        if wanted:  # any match enters; the last miss leaves
            miss = len(inner) if rest == 0 else 0
            assembled.append(_instruction(code, true=rest, false=miss, value=value))
        else:  # any match leaves
            assembled.append(_instruction(code, true=rest + len(inner), value=value))
    return [*assembled, *inner]


def _instruction(code: int, *, true: int = 0, false: int = 0, value: int = 0) -> bytes:
    """Encode one struct sock_filter."""
    if not (0 <= true <= _REACH and 0 <= false <= _REACH):
        raise ValueError("a jump is longer than eight bits can say")
    return struct.pack("=HBBI", code, true, false, value & 0xFFFFFFFF)
