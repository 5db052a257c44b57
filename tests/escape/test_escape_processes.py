"""Attacks on other processes: signals, tracing, memory, limits, shared memory, queues, keys, watches."""

from __future__ import annotations

import ctypes
import os
import secrets
import struct
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from attack import SUITE_IS_ROOT, Party, Scene, Victim, blocks_reading, libc, script_python

from skillrun.confine import world

if TYPE_CHECKING:
    from collections.abc import Callable

# Ways to signal the process args[0]. SIGIO, which the last ones send, ends a process by default.
SIGNALS = {
    "kill": "os.kill(int(args[0]), 9)",
    "killpg": "os.killpg(os.getpgid(int(args[0])), 9)",
    "tgkill": "call('tgkill', int(args[0]), int(args[0]), 9)",
    "queue": "call('rt_sigqueueinfo', int(args[0]), 9, struct.pack('iii', 9, 0, -1) + bytes(128))",
    "pidfd": "signal.pidfd_send_signal(os.pidfd_open(int(args[0])), 9)",
    "F_SETOWN": """
reading, writing = os.pipe()
fcntl.fcntl(reading, 8, int(args[0])); fcntl.fcntl(reading, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
os.write(writing, b'x')
""",
    "F_SETOWN_EX": """
reading, writing = os.pipe()
fcntl.fcntl(reading, 15, struct.pack('ii', 1, int(args[0]))); fcntl.fcntl(reading, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
os.write(writing, b'x')
""",
    "FIOSETOWN": """
one, other = socket.socketpair()
fcntl.ioctl(one, 0x8901, struct.pack('i', int(args[0])))
fcntl.fcntl(one, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
other.send(b'x')
""",
    "SIOCSPGRP": """
one, other = socket.socketpair()
fcntl.ioctl(one, 0x8902, struct.pack('i', int(args[0])))
fcntl.ioctl(one, 0x5452, struct.pack('i', 1))
other.send(b'x')
""",
}


@pytest.mark.parametrize("way", SIGNALS)
@pytest.mark.parametrize("abi", [None, 5, 3], ids=["this kernel", "ABI 5", "ABI 3"])
def test_blocks_signals_to_other_processes(scene: Scene, way: str, abi: int | None) -> None:
    """A process outside is not signalled, whichever call is used.

    Also where the kernel's Landlock can't scope signals (claimed through the probe, C-32): the filter does it then.
    """
    if abi and scene.level == 2:
        pytest.skip("at level 2 the pid namespace keeps signals inside, whatever Landlock can")
    scene.script(SIGNALS[way])
    with scene.victim(marked=way == "killpg") as victim:
        run = scene.confined(victim.pid, **({"probe": {"landlock": abi}} if abi else {}))
        assert run.attempted, run
        assert victim.alive(), "the confined script ended a process outside"
    with scene.victim(marked=way == "killpg") as victim:
        control = scene.plainly(victim.pid)
        assert not victim.alive(), f"the control did not succeed: {control}"


@pytest.mark.parametrize("abi", [None, 5])
def test_blocks_signals_to_the_launcher(scene: Scene, abi: int | None) -> None:
    """The parent of the script, skillrun's launcher, is not signalled: the run ends as if nothing had been tried."""
    body = """
for number in (9, 15, 19, 1, 2, 3, 10, 11):
    try: os.kill(os.getppid(), number); print('sent')
    except OSError: pass
print('done')
"""
    scene.script(body)
    run = scene.confined(**({"probe": {"landlock": abi}} if abi else {}))
    assert run.told["termination"] == "exited", run
    assert "done" in run.out
    # At level 2 the parent is the run's own init, which nothing but its namespace's parent can signal.
    assert scene.level == 2 or "sent" not in run.out
    parent = "import subprocess, sys; subprocess.run(sys.argv[1:]); print('survived')"
    control = scene.plainly(under=[script_python(), "-c", parent])
    assert control.code == -9


def loner(scene: Scene, known: dict[str, Party], outfit: Path) -> Party:
    """Give a user that has no process but those of one test, for attacks that hit all processes of a user."""
    if not SUITE_IS_ROOT or scene.party.uid == 0:
        pytest.skip("only root can be a user without other processes; the control would hit all of its own")
    if "loner" not in known:
        known["loner"] = Party("loner", 23456, outfit)
    party = known["loner"]
    subprocess.run(["chown", "-R", f"{party.uid}:{party.uid}", str(scene.base)], check=True)
    scene.party = party
    return party


def test_blocks_a_signal_to_everybody(scene: Scene, known_parties: dict[str, Party], outfit: Path) -> None:
    """kill(-1) reaches no process of the same user."""
    loner(scene, known_parties, outfit)
    scene.script("signal.signal(9 and 15, signal.SIG_IGN); os.kill(-1, 9)")
    with scene.victim() as victim:
        run = scene.confined()
        assert run.attempted, run
        assert victim.alive()
    with scene.victim() as victim:
        scene.plainly()
        assert not victim.alive()


def test_blocks_a_priority_for_everybody(scene: Scene, known_parties: dict[str, Party], outfit: Path) -> None:
    """setpriority(PRIO_USER) changes no process of the same user, with the user's number and with 0."""
    loner(scene, known_parties, outfit)
    scene.script("""
for who in (0, os.getuid()):
    try: os.setpriority(os.PRIO_USER, who, 7)
    except OSError as failure: print(failure)
""")
    with scene.victim() as victim:
        run = scene.confined()
        assert run.attempted, run
        assert os.getpriority(os.PRIO_PROCESS, victim.pid) == 0
        scene.plainly()
        assert os.getpriority(os.PRIO_PROCESS, victim.pid) == 7


def test_blocks_an_io_priority_for_everybody(
    scene: Scene, known_parties: dict[str, Party], outfit: Path
) -> None:
    """ioprio_set(IOPRIO_WHO_USER) changes no process of the same user."""
    party = loner(scene, known_parties, outfit)
    scene.script(f"call('ioprio_set', 3, {party.uid}, 3 << 13)")
    with scene.victim() as victim:
        assert scene.confined().attempted
        assert psutil.Process(victim.pid).ionice().ioclass != psutil.IOPRIO_CLASS_IDLE
        scene.plainly()
        assert psutil.Process(victim.pid).ionice().ioclass == psutil.IOPRIO_CLASS_IDLE


_THREADS = """
import threading
threading.stack_size(32768)
over = threading.Event()
made = 0
try:
    for _ in range(10_000):
        threading.Thread(target=over.wait, daemon=True).start()
        made += 1
except RuntimeError:
    pass
print('MADE', made, flush=True)
os._exit(0)
"""


def _bounded(scene: Scene) -> None:
    """Skip where the kernel bounds no ids for root."""
    if scene.party.uid == 0 and not world._has_ids_of_its_own(os.uname().release):
        pytest.skip("namespaces have a bound of their own from Linux 6.14 on")
    if scene.party.uid == 0 and not os.access("/proc/sys/kernel/pid_max", os.W_OK):
        pytest.skip("/proc/sys is read-only here, for a namespace too")


@pytest.mark.level(2)
def test_a_run_has_a_bound_of_process_ids(scene: Scene) -> None:
    """It is the run's own, cannot be changed from inside, and the machine's is as it was."""
    _bounded(scene)
    before = Path("/proc/sys/kernel/pid_max").read_text()
    scene.script(
        "try: open('/proc/sys/kernel/pid_max', 'w').write('32000')\nexcept OSError as problem: print('KEPT', problem)\n"
        "print('MOST', open('/proc/sys/kernel/pid_max').read())",
        front="metadata: {skillrun: {limits: {processes: 20}}}",
    )

    run = scene.confined()

    assert "KEPT" in run.out
    if os.access("/proc/sys/kernel/pid_max", os.W_OK):
        assert int(run.out.split("MOST")[1]) == 20 + 8192, run
    assert Path("/proc/sys/kernel/pid_max").read_text() == before


@pytest.mark.slow
@pytest.mark.alone  # its control takes a third of the machine's ids
@pytest.mark.level(2)
def test_blocks_taking_all_process_ids(scene: Scene) -> None:
    """Threads, which the limit of processes does not count for root, come to an end before the machine's ids do."""
    _bounded(scene)
    before = Path("/proc/sys/kernel/pid_max").read_text()
    scene.script(_THREADS, front="metadata: {skillrun: {limits: {processes: 20}}}")

    run = scene.confined()

    assert 10 < int(run.out.split("MADE")[1]) <= 20 + 8192, run
    assert Path("/proc/sys/kernel/pid_max").read_text() == before
    assert "MADE 10000" in scene.plainly().out


@pytest.mark.parametrize(
    ("release", "has"),
    [
        ("6.14", True),
        ("6.14-rc3", True),
        ("6.14.0-15-generic", True),
        ("7.0.1", True),
        ("6.13.12", False),
        ("5.99", False),
        ("6", False),
        ("4.4.0", False),
        ("unknown", False),
        ("", False),
    ],
)
def test_the_machines_own_bound_of_ids_is_never_written(release: str, has: bool) -> None:  # noqa: FBT001
    """Before Linux 6.14 the same file is the whole machine's, and root's run could change it."""
    assert world._has_ids_of_its_own(release) is has


CHANGES: dict[str, tuple[str, Callable[[Victim], object]]] = {
    "limits": (
        "import resource; resource.prlimit(int(args[0]), resource.RLIMIT_NOFILE, (17, 17))",
        lambda victim: Path(f"/proc/{victim.pid}/limits").read_text(),
    ),
    "priority": (
        "os.setpriority(os.PRIO_PROCESS, int(args[0]), 9)",
        lambda victim: os.getpriority(os.PRIO_PROCESS, victim.pid),
    ),
    "scheduler": (
        "os.sched_setscheduler(int(args[0]), os.SCHED_BATCH, os.sched_param(0))",
        lambda victim: os.sched_getscheduler(victim.pid),
    ),
    "scheduling attributes": (
        "call('sched_setattr', int(args[0]), struct.pack('IIQiIQQQ', 48, 3, 0, 0, 0, 0, 0, 0), 0)",
        lambda victim: os.sched_getscheduler(victim.pid),
    ),
    "processors": (
        "os.sched_setaffinity(int(args[0]), {min(os.sched_getaffinity(0))})",
        lambda victim: os.sched_getaffinity(victim.pid),
    ),
    "io priority": (
        "call('ioprio_set', 1, int(args[0]), 3 << 13)",
        lambda victim: psutil.Process(victim.pid).ionice(),
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_blocks_changing_other_processes(scene: Scene, what: str) -> None:
    """Limits, priorities and processors of a process outside stay; Landlock does not look at these calls."""
    body, look = CHANGES[what]
    if what == "processors" and len(os.sched_getaffinity(0)) == 1:
        pytest.skip("there is one processor only, so nothing could change")
    scene.script(body)
    with scene.victim() as victim:
        before = look(victim)
        run = scene.confined(victim.pid)
        assert run.attempted, run
        assert look(victim) == before
        control = scene.plainly(victim.pid)
        assert look(victim) != before, control


LOOKS = {
    "environ": "print(open('/proc/%s/environ' % args[0]).read())",
    "cmdline": "print(open('/proc/%s/cmdline' % args[0]).read())",
    "mem": """
with open('/proc/%s/mem' % args[0], 'rb', 0) as memory:
    memory.seek(int(args[1])); print(memory.read(40))
""",
    "fd": "print(open('/proc/%s/fd/%s' % (args[0], args[2])).read())",
    "process_vm_readv": """
here = ctypes.create_string_buffer(40)
local = struct.pack('PN', ctypes.addressof(here), 40); remote = struct.pack('PN', int(args[1]), 40)
call('process_vm_readv', int(args[0]), local, 1, remote, 1, 0)
print(here.raw)
""",
    "ptrace": """
call('ptrace', 16, int(args[0]), 0, 0); os.waitpid(int(args[0]), 0x40000000)
word = ctypes.c_long(); text = b''
for step in range(0, 40, 8):
    libc.syscall(ctypes.c_long(CALLS['ptrace'][COLUMN]), ctypes.c_long(2), ctypes.c_long(int(args[0])), ctypes.c_long(int(args[1]) + step), ctypes.byref(word))
    text += struct.pack('l', word.value)
print(text)
""",
    "pidfd_getfd": """
taken = call('pidfd_getfd', os.pidfd_open(int(args[0])), int(args[2]), 0)
print(os.pread(taken, 100, 0))
""",
}


@pytest.mark.parametrize("way", LOOKS)
def test_blocks_looking_into_other_processes(scene: Scene, way: str) -> None:
    """Environment, arguments, memory and open files of a process outside are not readable."""
    with scene.victim() as victim:
        token = {"environ": victim.variable, "cmdline": victim.words}.get(way, victim.token)
        blocks_reading(scene, LOOKS[way], token, victim.pid, victim.address, victim.file)


def test_blocks_looking_into_the_launcher(scene: Scene) -> None:
    """What the parent holds (its environment, arguments, open files) is not readable."""
    body = """
for name in ('environ', 'cmdline', 'maps', 'status', 'comm', 'mem'):
    try: print('read', name, len(open('/proc/%d/%s' % (os.getppid(), name), 'rb').read(10)))
    except OSError as failure: print(failure)
try: print('read', os.listdir('/proc/%d/fd' % os.getppid()))
except OSError as failure: print(failure)
print('processes', os.listdir('/proc'))
"""
    scene.script(body)
    run = scene.confined()
    assert run.attempted
    if scene.level == 1:
        assert "read" not in run.out
        assert "processes" not in run.out
    else:  # the run's own init: its command line is no secret, and it is all there is to see
        told = {line for line in run.out.splitlines() if line.startswith("read")}
        # As root the list of its descriptors shows as well, two numbers (what it tells the launcher and the owner by): where
        # each leads does not.
        known = ("read cmdline", "read status", "read comm", "read ['3', '4']")
        assert all(line.startswith(known) for line in told), told
        assert "'self'" in run.out
        assert not {str(os.getpid()), str(os.getppid())} & set(run.out.split("processes")[1].split("'"))
    assert "read comm" in scene.plainly().out


def test_blocks_writing_memory_of_other_processes(scene: Scene) -> None:
    """process_vm_writev and /proc/PID/mem change nothing in a process outside."""
    body = """
here = ctypes.create_string_buffer(b'overwritten')
local = struct.pack('PN', ctypes.addressof(here), 11); remote = struct.pack('PN', int(args[1]), 11)
try: print('written', call('process_vm_writev', int(args[0]), local, 1, remote, 1, 0))
except OSError as failure: print(failure)
with open('/proc/%s/mem' % args[0], 'r+b', 0) as memory:
    memory.seek(int(args[1])); memory.write(b'overwritten')
"""

    def held(victim: Victim) -> bytes:
        with Path(f"/proc/{victim.pid}/mem").open("rb", 0) as memory:
            memory.seek(victim.address)
            return memory.read(11)

    scene.script(body)
    with scene.victim() as victim:
        assert scene.confined(victim.pid, victim.address).attempted
        assert held(victim).startswith(b"secret ")
        scene.plainly(victim.pid, victim.address)
        assert held(victim) == b"overwritten"


def test_blocks_comparing_kernel_objects(scene: Scene) -> None:
    """Kcmp tells nothing about a process outside."""
    with scene.victim() as victim:
        scene.script("print('compared', call('kcmp', os.getpid(), int(args[0]), 1, 0, 0))")
        control = scene.plainly(victim.pid)
        if "compared" not in control.out:
            pytest.skip(f"this kernel has no kcmp: {control.err.splitlines()[-1]}")
        run = scene.confined(victim.pid)
        assert run.attempted
        assert "compared" not in run.out


def test_blocks_shared_memory_segments(scene: Scene) -> None:
    """A SysV segment of another program is not attached."""
    token = secrets.token_hex(12)
    c = libc()
    c.shmat.restype = ctypes.c_void_p
    number = c.shmget(0, 4096, 0o1666)
    assert number >= 0
    place = c.shmat(number, None, 0)
    ctypes.memmove(place, token.encode(), len(token))
    body = """
libc.shmat.restype = ctypes.c_void_p
print(ctypes.string_at(libc.shmat(int(args[0]), None, 0o10000), 24))
"""
    try:
        blocks_reading(scene, body, token, number)
    finally:
        c.shmdt(ctypes.c_void_p(place))
        c.shmctl(number, 0, None)


def test_blocks_semaphores(scene: Scene) -> None:
    """A SysV semaphore of another program is not changed."""
    c = libc()
    number = c.semget(0, 1, 0o1666)
    assert number >= 0
    scene.script("print(libc.semctl(int(args[0]), 0, 16, 7))")
    try:
        assert scene.confined(number).attempted
        assert c.semctl(number, 0, 12, 0) == 0
        scene.plainly(number)
        assert c.semctl(number, 0, 12, 0) == 7
    finally:
        c.semctl(number, 0, 0, 0)


def test_blocks_message_queues(scene: Scene) -> None:
    """A message in a SysV queue of another program is not taken."""
    token = secrets.token_hex(12)
    c = libc()
    number = c.msgget(0, 0o1666)
    assert number >= 0
    message = ctypes.create_string_buffer(struct.pack("l", 1) + token.encode())  # struct msgbuf: type, text
    assert c.msgsnd(number, message, 24, 0) == 0
    body = """
room = ctypes.create_string_buffer(100)
if libc.msgrcv(int(args[0]), room, 90, 0, 0o4000) > 0: print(room.raw)
"""
    try:
        blocks_reading(scene, body, token, number)
    finally:
        c.msgctl(number, 0, None)


def test_blocks_posix_message_queues(scene: Scene) -> None:
    """A message in a POSIX queue of another program is not taken."""
    token = secrets.token_hex(12)
    name = f"/skillrun-{secrets.token_hex(6)}".encode()
    c = libc()
    if not hasattr(c, "mq_open"):
        pytest.skip("this C library keeps mq_open elsewhere")
    queue = c.mq_open(name, os.O_CREAT | os.O_RDWR, 0o666, None)
    if queue < 0:
        pytest.skip("this kernel has no POSIX queues")
    os.fchmod(queue, 0o666)
    assert c.mq_send(queue, token.encode(), 24, 0) == 0
    body = """
queue = libc.mq_open(args[0].encode(), os.O_RDONLY | os.O_NONBLOCK)
room = ctypes.create_string_buffer(8192)
if libc.mq_receive(queue, room, 8192, None) > 0: print(room.value)
"""
    try:
        blocks_reading(scene, body, token, name.decode())
    finally:
        os.close(queue)
        c.mq_unlink(name)


def test_blocks_keys_of_the_keyring(scene: Scene) -> None:
    """A key that the user keeps in the kernel is not read."""
    token, name = secrets.token_hex(12), f"skillrun-{secrets.token_hex(6)}"
    body = """
if args[1:]:
    call('add_key', b'user', args[0].encode(), args[1].encode(), len(args[1]), -4)
key = call('keyctl', 10, -4, b'user', args[0].encode(), 0)
room = ctypes.create_string_buffer(100)
call('keyctl', 11, key, room, 100)
print(room.value)
"""
    scene.script(body)
    made = scene.plainly(name, token)
    if token not in made.out:
        pytest.skip(f"this kernel keeps no keys: {made.err.splitlines()[-1]}")
    blocks_reading(scene, body, token, name)


@pytest.mark.parametrize("way", ["inotify", "dnotify"])
def test_blocks_watching_a_folder_outside(scene: Scene, way: str) -> None:
    """No watch tells the names of files that are used in a home folder, or that something happened there."""
    name = f"seen-{secrets.token_hex(6)}"
    body = {
        "inotify": """
watch = call('inotify_init1', 0)
call('inotify_add_watch', watch, args[0].encode(), 0xfff)
import select
print('SEEN' if select.select([watch], [], [], 2)[0] else '', os.read(watch, 4096) if 1 else '')
""",
        "dnotify": """
seen = []
signal.signal(signal.SIGIO, lambda *_: seen.append(1))
fcntl.fcntl(os.open(args[0], os.O_RDONLY), 1026, 0x8000003f)
time.sleep(1)
print('SEEN' if seen else '')
""",
    }[way]
    over = threading.Event()

    def live() -> None:
        while not over.wait(0.05):
            (scene.home / name).touch()
            (scene.home / name).unlink()

    living = threading.Thread(target=live)
    living.start()
    # For dnotify the folder must be open: it may be read, and still not be watched.
    watched = scene.home
    if way == "dnotify":
        scene.ceiling = scene.file(scene.base / "c.yaml", f'sandbox:\n  fs_read: ["{watched}"]\n')
    try:
        front = f'fs_read: ["{watched}"]' if way == "dnotify" else 'fs_read: ["."]'
        blocks_reading(scene, body, "SEEN", watched, front=front)
    finally:
        over.set()
        living.join()


def test_blocks_locking_up_the_caller(scene: Scene) -> None:
    """A lease on a file that may be read would make every other opener wait: it can't be taken."""
    target = scene.file(scene.workspace / "file.txt")
    body = """
file = os.open(args[0], os.O_RDONLY)
fcntl.fcntl(file, 1024, 0 if not args[1:] else 1); print('leased')
"""
    blocks_reading(scene, body, "leased", target, front='fs_read: ["."]')


def test_blocks_a_set_of_signals_that_arrive_later(scene: Scene) -> None:
    """What a script leaves behind signals nobody: nothing of it is alive when the result is there."""
    body = """
if os.fork() == 0:
    os.setsid()
    time.sleep(1); os.kill(int(args[0]), 9); os._exit(0)
"""
    scene.script(body)
    with scene.victim() as victim:
        run = scene.confined(victim.pid)
        assert run.attempted
        assert run.told["leftovers"] == 1
        time.sleep(1.5)
        assert victim.alive()
    with scene.victim() as victim:
        scene.plainly(victim.pid)
        time.sleep(1.5)
        assert not victim.alive()
