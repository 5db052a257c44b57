"""The assembled filter, run by a small interpreter of classic BPF and compared with the table it was made from."""

from __future__ import annotations

import errno
import functools
import itertools
import os
import random
import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from skillrun.sandbox.linux import telling
from skillrun.sandbox.linux.seccomp import Conditions, assemble

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PROFILES = Path(__file__).resolve().parents[2] / "profiles/linux"
RULES: list[dict[str, Any]] = yaml.safe_load((PROFILES / "seccomp.yaml").read_text())
NUMBERS: dict[str, list[int | None]] = yaml.safe_load((PROFILES / "syscalls.yaml").read_text())

# <linux/audit.h>
X86_64, AARCH64, I386, ARM, RISCV64 = 0xC000003E, 0xC00000B7, 0x40000003, 0x40000028, 0xC00000F3
MACHINES = {"x86_64": (X86_64, 0), "aarch64": (AARCH64, 1)}
ALLOW, KILL = "allow", "kill"
VARIANTS = [
    Conditions(machine=machine, level=level, network=network, signals_scoped=scoped, unix=unix)
    for machine in MACHINES
    for level, network, scoped, unix in itertools.product((1, 2), (False, True), (False, True), (False, True))
]
NAMES = [
    f"{v.machine}-{v.level}-{'net' if v.network else 'no'}-{'scoped' if v.signals_scoped else 'open'}-{'u' if v.unix else 'c'}"
    for v in VARIANTS
]


@dataclass(frozen=True, slots=True)
class Call:
    """One system call as a filter sees it: struct seccomp_data without the instruction pointer."""

    number: int
    arguments: tuple[int, ...] = (0,) * 6
    architecture: int = X86_64

    def data(self) -> bytes:
        """Lay it out as the kernel does on a little-endian machine."""
        return struct.pack(
            "<iIQ6Q",
            self.number if self.number < 1 << 31 else self.number - (1 << 32),
            self.architecture,
            0,
            *self.arguments,
        )


@functools.lru_cache(maxsize=64)
def decoded(program: bytes) -> list[tuple[int, int, int, int]]:
    """Read an array of struct sock_filter: code, jump if true, jump if false, value."""
    return [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]


def interpret(program: bytes, call: Call) -> int:
    """Run a program of struct sock_filter as the kernel does, and return the 32-bit answer.

    Only what seccomp allows is known (seccomp(2), kernel/seccomp.c: absolute word loads, ALU and jumps).
    """
    instructions = decoded(program)
    data = call.data()
    accumulator, counter = 0, 0
    for _ in range(len(instructions)):  # jumps go forward only, so this is a bound
        code, true, false, value = instructions[counter]
        counter += 1
        if code == 0x20:  # BPF_LD | BPF_W | BPF_ABS
            assert value % 4 == 0
            (accumulator,) = struct.unpack_from("<I", data, value)
        elif code == 0x06:  # BPF_RET | BPF_K
            return int(value)
        elif code == 0x54:  # BPF_ALU | BPF_AND | BPF_K
            accumulator &= value
        elif code == 0x05:  # BPF_JMP | BPF_JA
            counter += value
        elif code == 0x15:  # BPF_JMP | BPF_JEQ | BPF_K
            counter += true if accumulator == value else false
        elif code == 0x35:  # BPF_JMP | BPF_JGE | BPF_K
            counter += true if accumulator >= value else false
        else:
            assert code == 0x45, (
                f"seccomp or this test does not know the code {code:#x}"
            )  # BPF_JMP | BPF_JSET | BPF_K
            counter += true if accumulator & value else false
    raise AssertionError("the program has no end")


def meaning(answer: int) -> str | int:
    """Say what an answer means: `allow`, `kill`, or the errno that the caller sees (0: success without effect)."""
    if answer == 0x7FFF0000:
        return ALLOW
    if answer == 0x80000000:
        return KILL
    assert answer & 0xFFFF0000 == 0x00050000
    return answer & 0xFFFF


def holds(condition: Mapping[str, Any], arguments: Sequence[int]) -> bool:
    """Read one condition of the table."""
    value = arguments[condition["arg"]] & 0xFFFFFFFF
    value &= condition.get("and", 0xFFFFFFFF)
    if "bits" in condition:
        return bool(value & condition["bits"])
    return value in condition["in"] if "in" in condition else value not in condition["not_in"]


def wanted(conditions: Conditions, call: Call, name: str | None) -> str | int:
    """Read the table for one call: the first rule that names it and whose conditions hold answers."""
    for rule in RULES:
        if name not in rule["calls"] or conditions.level not in rule.get("levels", [1, 2]):
            continue
        if rule.get("network") == "none" and conditions.network:
            continue
        if rule.get("network") == "any" and not conditions.network:
            continue
        if rule.get("signals") == "open" and conditions.signals_scoped:
            continue
        if rule.get("unix") == "closed" and conditions.unix:
            continue
        if all(holds(condition, call.arguments) for condition in rule.get("when", ())):
            return 0 if rule["answer"] == "ok" else int(getattr(errno, rule["answer"]))
    return ALLOW


def edges(condition: Mapping[str, Any]) -> set[int]:
    """Give the values of an argument where a condition could tip."""
    values = {0, 1, 2, 0xFFFFFFFF, 0x7FFFFFFF, 0x80000000}
    if "bits" in condition:
        bits = condition["bits"]
        values |= {bits, bits ^ 0xFFFFFFFF} | {1 << n for n in range(32)}
    for value in (*condition.get("in", ()), *condition.get("not_in", ())):
        values |= {value, value + 1, max(value - 1, 0), value ^ 0x80000000}
        values |= (
            {value | ~condition["and"] & 0xFFFFFFFF, value | 0x800, value | 0x80000}
            if "and" in condition
            else set()
        )
    return {value & 0xFFFFFFFF for value in values}


def tries(rule: Mapping[str, Any]) -> Iterator[tuple[int, ...]]:
    """Give arguments at the edges of each condition of a rule, while the others hold or do not.

    With rubbish in the high halves and in the other arguments, which must not matter.
    """
    conditions = rule.get("when", ())
    for high, other in ((0, 0), (0xFFFFFFFF, 0xFFFFFFFF), (0xDEADBEEF, 0xC00)):
        if not conditions:
            yield (high << 32 | other,) * 6
        for moved in conditions:
            rest = [condition for condition in conditions if condition is not moved]
            for fulfilled in (True, False) if rest else (True,):
                arguments = [other] * 6
                for condition in rest:
                    fitting = (v for v in sorted(edges(condition)) if holds(condition, [v] * 6) is fulfilled)
                    arguments[condition["arg"]] = high << 32 | next(fitting)
                for value in edges(moved):
                    arguments[moved["arg"]] = high << 32 | value
                    yield tuple(arguments)


NEWEST = 469  # file_setattr: the last call that the table was written with in mind


@pytest.mark.parametrize("conditions", VARIANTS, ids=NAMES)
def test_every_rule_does_what_the_table_says(conditions: Conditions) -> None:
    """At the edges of every condition the program and the table give one answer, on either architecture."""
    program = assemble(conditions)
    architecture, column = MACHINES[conditions.machine]
    for rule in RULES:
        for name in rule["calls"]:
            number = NUMBERS[name][column]
            if number is None:
                continue
            for arguments in tries(rule):
                call = Call(number, arguments, architecture)
                assert meaning(interpret(program, call)) == wanted(conditions, call, name), (name, call)


@pytest.mark.parametrize("conditions", VARIANTS, ids=NAMES)
def test_every_number_does_what_the_table_says(conditions: Conditions) -> None:
    """No number falls between: known ones that no rule names are allowed, and nobody has looked at newer ones."""
    seed = int(os.environ.get("SKILLRUN_SEED") or random.SystemRandom().getrandbits(32))
    chance = random.Random(seed)
    program = assemble(conditions)
    architecture, column = MACHINES[conditions.machine]
    names = {numbers[column]: name for name, numbers in NUMBERS.items()}
    for number in (*range(700), 0x3FFFFFFF):
        arguments = tuple(
            chance.choice([0, 1, 2, 10, 0xC00, 0x40, 0x5412, chance.getrandbits(64)]) for _ in range(6)
        )
        call = Call(number, arguments, architecture)
        got = meaning(interpret(program, call))
        want = errno.ENOSYS if number > NEWEST else wanted(conditions, call, names.get(number))
        assert got == want, f"{call}, SKILLRUN_SEED={seed}"


@pytest.mark.parametrize("conditions", VARIANTS, ids=NAMES)
@pytest.mark.parametrize("architecture", [I386, ARM, RISCV64, 0, 0xFFFFFFFF])
def test_another_architecture_is_killed(conditions: Conditions, architecture: int) -> None:
    """A number means another call there, so nothing of it is looked at: the process ends."""
    other = {"x86_64": AARCH64, "aarch64": X86_64}[conditions.machine]
    program = assemble(conditions)
    for number in (0, 1, 41, 198, 0x40000000, 0xFFFFFFFF):
        for wrong in (architecture, other):
            assert meaning(interpret(program, Call(number, architecture=wrong))) == KILL


@pytest.mark.parametrize("conditions", [v for v in VARIANTS if v.machine == "x86_64"])
def test_x32_does_not_exist(conditions: Conditions) -> None:
    """Numbers from 0x40000000 on are a second set for the same calls: all answer ENOSYS, and none below does for that."""
    program = assemble(conditions)
    for number in (
        0x40000000,
        0x40000001,
        0x40000000 + 41,
        0x40000000 + 520,
        0x7FFFFFFF,
        0x80000000,
        0xFFFFFFFF,
    ):
        assert meaning(interpret(program, Call(number))) == errno.ENOSYS
    assert meaning(interpret(program, Call(39))) == ALLOW


@pytest.mark.parametrize("conditions", VARIANTS, ids=NAMES)
def test_the_kernel_would_take_the_program(conditions: Conditions) -> None:
    """Only codes that seccomp knows, jumps that stay inside, a return at every end, 4,096 instructions at most."""
    program = assemble(conditions)
    assert len(program) % 8 == 0
    instructions = decoded(program)
    assert 4 < len(instructions) <= 4096
    for at, (code, true, false, value) in enumerate(instructions):
        assert code in {0x20, 0x06, 0x54, 0x05, 0x15, 0x35, 0x25, 0x45}
        if code in {0x15, 0x35, 0x25, 0x45}:
            assert at + 1 + max(true, false) < len(instructions)
        if code == 0x05:
            assert at + 1 + value < len(instructions)
        if code == 0x20:
            assert value in {0, 4, *range(16, 64, 8)}, "only the low half of an argument is ever named"
    assert instructions[0] == (0x20, 0, 0, 4), "the architecture is looked at first"
    assert instructions[-1][0] == 0x06


def test_no_filter_for_a_machine_that_is_not_known() -> None:
    """A filter with another machine's numbers would be worse than none, so none is made."""
    with pytest.raises(KeyError):
        assemble(Conditions(machine="riscv64", level=1, network=False, signals_scoped=True))


# Written apart from the table: what must be so whatever the table says. {call: [(arguments, level 1, level 2)]}; None: not asked.
O_CREAT, O_TMPFILE, NEWUSER = 0x40, 0x410000, 0x10000000
MUST: dict[str, list[tuple[tuple[int, ...], str | int | None, str | int | None]]] = {
    "io_uring_setup": [((1,), errno.ENOSYS, errno.ENOSYS)],
    "clone3": [((0,), errno.ENOSYS, errno.ENOSYS)],
    "openat2": [((0,), errno.ENOSYS, errno.ENOSYS)],
    "clone": [((NEWUSER,), errno.EPERM, errno.EPERM), ((0x00020000 | 17,), errno.EPERM, errno.EPERM),
              ((0x40000000,), errno.EPERM, errno.EPERM), ((0x02000000,), errno.EPERM, errno.EPERM),
              ((17,), ALLOW, ALLOW), ((0x003D0F00,), ALLOW, ALLOW)],
    "unshare": [((NEWUSER,), errno.EPERM, errno.EPERM), ((0,), errno.EPERM, errno.EPERM)],
    "setns": [((3,), errno.EPERM, errno.EPERM)],
    "mount": [((0,), errno.EPERM, errno.EPERM)],
    "chroot": [((0,), errno.EPERM, errno.EPERM)],
    "open_tree": [((0,), errno.EPERM, errno.EPERM)],
    "ptrace": [((0,), errno.EPERM, errno.EPERM), ((16,), errno.EPERM, errno.EPERM)],
    "process_vm_readv": [((1,), errno.EPERM, errno.EPERM)],
    "pidfd_getfd": [((3,), errno.EPERM, errno.EPERM)],
    "keyctl": [((11,), errno.EPERM, errno.EPERM)],
    "add_key": [((0,), errno.EPERM, errno.EPERM)],
    "bpf": [((0,), errno.EPERM, errno.EPERM)],
    "name_to_handle_at": [((0,), errno.EPERM, errno.EPERM)],
    "ioctl": [((0, 0x5412), errno.EPERM, errno.EPERM), ((0, 0x541C), errno.EPERM, errno.EPERM),
              ((0, 0x40086602), errno.EPERM, None), ((0, 0x401C5820), errno.EPERM, None), ((0, 0x5401), ALLOW, ALLOW)],
    "fcntl": [((0, 8), errno.EPERM, None), ((0, 15), errno.EPERM, None), ((0, 1024), errno.EPERM, None),
              ((0, 1026), errno.EPERM, None), ((0, 3), ALLOW, ALLOW), ((0, 1030), ALLOW, ALLOW)],
    "openat": [((0, 0, O_CREAT, 0o4755), errno.EPERM, errno.EPERM), ((0, 0, O_CREAT, 0o2755), errno.EPERM, errno.EPERM),
               ((0, 0, O_TMPFILE, 0o4755), errno.EPERM, errno.EPERM), ((0, 0, 0, 0o6777), ALLOW, ALLOW),
               ((0, 0, O_CREAT, 0o1777), ALLOW, ALLOW)],
    "mknodat": [((0, 0, 0o104755), errno.EPERM, errno.EPERM), ((0, 0, 0o100755), ALLOW, ALLOW)],
    "fchmod": [((0, 0o4755), None, errno.EPERM), ((0, 0o755), 0, ALLOW)],
    "fchmodat": [((0, 0, 0o2755), None, errno.EPERM), ((0, 0, 0o755), 0, ALLOW)],
    "fchmodat2": [((0, 0, 0o4755), None, errno.EPERM), ((0, 0, 0o755), 0, ALLOW)],
    "fchownat": [((0,), 0, ALLOW)],
    "utimensat": [((0,), 0, ALLOW)],
    "setxattr": [((0,), 0, ALLOW)],
    "setxattrat": [((0,), 0, ALLOW)],
    "file_setattr": [((0,), 0, ALLOW)],
    "inotify_init1": [((0,), errno.EPERM, ALLOW)],
    "setsid": [((0,), 0, ALLOW)],
    "setpgid": [((0, 0), 0, ALLOW)],
    "socket": [((1, 1), errno.EACCES, ALLOW), ((2, 1), errno.EACCES, ALLOW), ((16, 3), errno.EACCES, ALLOW),
               ((40, 1), errno.EACCES, errno.EAFNOSUPPORT), ((17, 3), errno.EACCES, errno.EAFNOSUPPORT)],
    "socketpair": [((1, 1), ALLOW, ALLOW), ((1, 5 | 0x80000), ALLOW, ALLOW), ((1, 2), errno.EACCES, ALLOW),
                   ((1, 2 | 0x80800), errno.EACCES, ALLOW), ((1, 3), errno.EACCES, ALLOW)],
    "shmget": [((0,), errno.EACCES, errno.EACCES)],
    "mq_open": [((0,), errno.EACCES, ALLOW)],
    "prlimit64": [((0, 7), ALLOW, ALLOW), ((1234, 7), errno.EPERM, errno.EPERM), ((1 << 32, 7), ALLOW, ALLOW)],
    "sched_setaffinity": [((77,), errno.EPERM, errno.EPERM), ((0,), ALLOW, ALLOW)],
    "setpriority": [((2, 0), errno.EPERM, errno.EPERM), ((0, 5), errno.EPERM, errno.EPERM), ((0, 0), ALLOW, ALLOW)],
    "ioprio_set": [((3, 0), errno.EPERM, errno.EPERM), ((1, 0), ALLOW, ALLOW), ((1, 9), errno.EPERM, errno.EPERM)],
    "kill": [((1, 9), ALLOW, ALLOW)],
    "statmount": [((0,), errno.EPERM, errno.EPERM)],
    "init_module": [((0,), errno.EPERM, errno.EPERM)],
    "kexec_load": [((0,), errno.EPERM, errno.EPERM)],
    "open": [((0, O_CREAT, 0o4755), errno.EPERM, errno.EPERM), ((0, O_TMPFILE, 0o2755), errno.EPERM, errno.EPERM),
             ((0, 0, 0o6777), ALLOW, ALLOW), ((0, O_CREAT, 0o777), ALLOW, ALLOW)],
    "creat": [((0, 0o4755), errno.EPERM, errno.EPERM), ((0, 0o755), ALLOW, ALLOW)],
    "mknod": [((0, 0o104755), errno.EPERM, errno.EPERM), ((0, 0o100755), ALLOW, ALLOW)],
    "personality": [((0xFFFFFFFF,), ALLOW, ALLOW), ((0x0040000,), errno.EPERM, errno.EPERM)],
}  # fmt: skip


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("name", MUST)
def test_the_filter_stops_what_it_is_for(machine: str, level: int, name: str) -> None:
    """With no network granted, on a kernel that scopes signals: a list written apart from the table."""
    program = assemble(Conditions(machine=machine, level=level, network=False, signals_scoped=True))
    architecture, column = MACHINES[machine]
    number = NUMBERS[name][column]
    if number is None:
        pytest.skip(f"{machine} has no {name}")
    for arguments, *answers in MUST[name]:
        answer = answers[level - 1]
        if answer is not None:
            call = Call(number, (*arguments, *(0,) * (6 - len(arguments))), architecture)
            assert meaning(interpret(program, call)) == answer, call


@pytest.mark.parametrize("machine", MACHINES)
def test_signals_are_stopped_where_the_kernel_does_not_scope_them(machine: str) -> None:
    """Below ABI 6, at level 1: nothing that signals a process by number is left, but the own group is (C-32)."""
    program = assemble(Conditions(machine=machine, level=1, network=False, signals_scoped=False))
    architecture, column = MACHINES[machine]

    def answer(name: str, *arguments: int) -> str | int:
        number = NUMBERS[name][column]
        assert number is not None
        return meaning(
            interpret(program, Call(number, (*arguments, *(0,) * (6 - len(arguments))), architecture))
        )

    assert answer("kill", 0, 9) == ALLOW
    for pid in (1, 1234, 0xFFFFFFFF, (1 << 64) - 1):
        assert answer("kill", pid, 9) == errno.EPERM
        assert answer("tgkill", pid, pid, 9) == errno.EPERM
    for name in ("tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal"):
        assert answer(name, 1234) == errno.EPERM


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("request_number", [0x8901, 0x8902])
def test_the_owner_of_a_socket_is_not_set(machine: str, request_number: int) -> None:
    """FIOSETOWN and SIOCSPGRP say who gets SIGIO of a socket, which a script can make a pair of: a signal (C-32)."""
    program = assemble(Conditions(machine=machine, level=1, network=False, signals_scoped=False))
    architecture, column = MACHINES[machine]
    number = NUMBERS["ioctl"][column]
    assert number is not None
    call = Call(number, (3, request_number, 0, 0, 0, 0), architecture)
    assert meaning(interpret(program, call)) == errno.EPERM


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("scoped", [True, False])
@pytest.mark.parametrize("family", [1, 2, 10, 16, 17, 31, 40, 43])
def test_a_network_is_the_internet(machine: str, level: int, family: int, *, scoped: bool) -> None:
    """With a network granted: IPv4 and IPv6; at level 2 netlink, and unix where abstract names are kept inside."""
    program = assemble(Conditions(machine=machine, level=level, network=True, signals_scoped=scoped))
    architecture, column = MACHINES[machine]
    number = NUMBERS["socket"][column]
    assert number is not None
    allowed = {2, 10} if level == 1 else {1, 2, 10, 16} if scoped else {2, 10, 16}
    answer = meaning(interpret(program, Call(number, (family, 1, 0, 0, 0, 0), architecture)))
    assert (answer == ALLOW) is (family in allowed)


@pytest.mark.parametrize("machine", MACHINES)
def test_unix_sockets_are_closed_where_nobody_looked_for_them(machine: str) -> None:
    """At level 2, when the look for sockets under granted folders was not finished, none can be made at all."""
    architecture, column = MACHINES[machine]
    number = NUMBERS["socket"][column]
    assert number is not None
    for unix in (True, False):
        conditions = Conditions(machine=machine, level=2, network=False, signals_scoped=True, unix=unix)
        call = Call(number, (1, 1, 0, 0, 0, 0), architecture)
        assert meaning(interpret(assemble(conditions), call)) == (ALLOW if unix else errno.EACCES)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("request_name", "request_number"),
    [
        ("FS_IOC_SETFLAGS", 0x40086602), ("FS_IOC32_SETFLAGS", 0x40046602), ("FS_IOC_FSSETXATTR", 0x401C5820),
        ("FS_IOC_SETVERSION", 0x40087602), ("EXT4_IOC_SETVERSION", 0x40086604), ("EXT4_IOC32_SETVERSION", 0x40046604),
        ("EXT4_IOC_MIGRATE", 0x6609), ("FS_IOC_ENABLE_VERITY", 0x40806685),
        ("BTRFS_IOC_SUBVOL_CREATE", 0x5000940E), ("BTRFS_IOC_SUBVOL_CREATE_V2", 0x50009418),
        ("BTRFS_IOC_SNAP_CREATE", 0x50009401), ("BTRFS_IOC_SNAP_CREATE_V2", 0x50009417),
        ("BTRFS_IOC_SNAP_DESTROY", 0x5000940F), ("BTRFS_IOC_SUBVOL_SETFLAGS", 0x4008941A),
    ],
)  # fmt: skip
def test_attributes_are_not_changed_through_a_descriptor_for_reading(
    machine: str, request_name: str, request_number: int
) -> None:
    """At level 1 no ioctl that takes a descriptor opened for reading changes a file or makes a name (Landlock has no word in it)."""
    program = assemble(Conditions(machine=machine, level=1, network=False, signals_scoped=True))
    architecture, column = MACHINES[machine]
    number = NUMBERS["ioctl"][column]
    assert number is not None
    call = Call(number, (3, request_number, 0, 0, 0, 0), architecture)
    assert meaning(interpret(program, call)) == errno.EPERM, request_name


@pytest.mark.parametrize("machine", MACHINES)
def test_pairs_of_sockets_are_of_one_family(machine: str) -> None:
    """socketpair() makes pairs of other families too, where a kernel has them (TIPC): only AF_UNIX is needed."""
    program = assemble(Conditions(machine=machine, level=1, network=False, signals_scoped=True))
    architecture, column = MACHINES[machine]
    number = NUMBERS["socketpair"][column]
    assert number is not None
    for family in (2, 10, 16, 30, 40, 43):
        assert meaning(interpret(program, Call(number, (family, 1, 0, 0, 0, 0), architecture))) != ALLOW


def test_every_rule_has_a_reason_and_known_words() -> None:
    """The table is reviewed like code: each rule says why, and nothing in it is a word that nobody reads."""
    for rule in RULES:
        assert set(rule) <= {"calls", "answer", "levels", "network", "signals", "unix", "when", "why"}
        assert rule["why"]
        assert rule["answer"] == "ok" or hasattr(errno, rule["answer"])
        assert all(name in NUMBERS for name in rule["calls"])
        for condition in rule.get("when", ()):
            assert set(condition) <= {"arg", "in", "not_in", "bits", "and"}
            assert len({"in", "not_in", "bits"} & set(condition)) == 1
            assert 0 <= condition["arg"] < 6
    used = {name for rule in RULES for name in rule["calls"]}
    used |= {row["call"] for row in yaml.safe_load((PROFILES / "trace.yaml").read_text())}
    assert set(NUMBERS) == used


@pytest.mark.parametrize("machine", MACHINES)
def test_a_traced_run_tells_of_the_named_calls_and_allows_the_rest(machine: str) -> None:
    """The second filter of a traced run answers "tell" for each call of trace.yaml, and never refuses or kills."""
    architecture, column = MACHINES[machine]
    rows = yaml.safe_load((PROFILES / "trace.yaml").read_text())
    assert all(set(row) <= {"call", "paths", "flags", "address", "why"} and row["why"] for row in rows)
    wanted = {NUMBERS[row["call"]][column] for row in rows} - {None}
    for number in range(500):
        answer = interpret(telling.program(machine), Call(number, (0,) * 6, architecture))
        assert answer == (0x7FC00000 if number in wanted else 0x7FFF0000), number
    assert interpret(telling.program(machine), Call(2, (0,) * 6, 0)) == 0x7FFF0000
    assert set(telling.told(machine)) == wanted


def header(*candidates: str) -> dict[str, int]:
    """Read the numbers of the system calls of a kernel header."""
    for candidate in candidates:
        path = Path(candidate)
        if path.is_file():
            found = re.findall(r"^#define __NR(?:3264)?_(\w+)\s+(\d+)", path.read_text(), re.MULTILINE)
            return {name: int(number) for name, number in found}
    pytest.skip(f"this machine has none of {', '.join(candidates)}")


@pytest.mark.parametrize("machine", MACHINES)
def test_the_numbers_are_those_of_the_headers(machine: str) -> None:
    """Every number that the headers of this machine know is the one of the table, and what one architecture lacks is lacking."""
    if machine == "x86_64":
        known = header("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h")
    else:
        known = header("/usr/include/asm-generic/unistd.h")
    column = MACHINES[machine][1]
    compared = 0
    for name, numbers in NUMBERS.items():
        if name in known:
            assert numbers[column] == known[name], name
            compared += 1
        elif numbers[column] is not None:
            newest = max(known.values())
            assert numbers[column] > newest - 3, f"{name} is older than the header and not in it"  # type: ignore[operator]
    assert compared > 100
