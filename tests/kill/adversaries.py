"""Scripts that do not want to end. Each says `ready` once it has made its preparations.

All end by themselves after half a minute, or when a file `stop` appears, so that a failed test does not
leave a fork chain on the machine.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

_PRELUDE = """
import ctypes, os, signal, sys, time
END = time.monotonic() + 30
OUT = os.environ["WORKSPACE"] + "/out"
BEAT = os.open(OUT + "/beat", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
LIBC = ctypes.CDLL(None)
ARM = os.uname().machine == "aarch64"
def over():
    return time.monotonic() > END or os.path.exists(OUT + "/stop")
def ready():
    os.write(1, b"ready\\n")
def beat():
    os.write(BEAT, b".")
def rest():
    while not over():
        time.sleep(0.05)
        beat()
    os._exit(0)
def deaf():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
def fork(work, session=False):
    pid = os.fork()
    if pid == 0:
        try:
            if session:
                os.setsid()
            work()
        finally:
            os._exit(0)
    return pid
def daemon(work=rest):
    # Two forks and a session between them: an orphan in a session of its own.
    between = fork(lambda: fork(work), session=True)
    os.waitpid(between, 0)
def clone(flags):
    # PyDLL keeps the interpreter lock, which the child of a raw clone must find held.
    return ctypes.PyDLL(None).syscall(220 if ARM else 56, flags, 0, 0, 0, 0)
"""


class Control(enum.Enum):
    """What a plain `subprocess` gets wrong about an adversary."""

    SURVIVES = "something is alive after the child was terminated, killed and reaped"
    STUBBORN = "the child does not end on SIGTERM"
    SILENT = "end of file comes while the child is alive"


@dataclass(frozen=True, slots=True)
class Adversary:
    """A script: `leaves` says whether its leader ends by itself, with 0, right after `ready`."""

    name: str
    body: str
    control: Control
    leaves: bool = False

    @property
    def source(self) -> str:
        """The whole script."""
        return _PRELUDE + self.body


ADVERSARIES = (
    Adversary("ignores-term", "deaf(); ready(); rest()", Control.STUBBORN),
    Adversary("daemon", "daemon(); ready(); rest()", Control.SURVIVES),
    Adversary("leader-exits-daemon-holds-stdout", "daemon(); ready()", Control.SURVIVES, leaves=True),
    Adversary(
        "leader-exits-chain-goes-on",
        """
def step():
    while not over():
        beat()
        if os.fork():
            os._exit(0)
fork(step); ready()
""",
        Control.SURVIVES,
        leaves=True,
    ),
    Adversary(
        "chain-in-group",
        """
def step():
    while not over():
        beat()
        if os.fork():
            os._exit(0)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
fork(step); ready(); rest()
""",
        Control.SURVIVES,
    ),
    Adversary(
        "chain-new-session-each-step",
        """
def step():
    while not over():
        os.setsid() if os.getpgrp() != os.getpid() else None
        beat()
        if os.fork():
            os._exit(0)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
deaf(); fork(step, session=True); ready(); rest()
""",
        Control.SURVIVES,
    ),
    Adversary(
        "sixty-that-replace-themselves",
        """
def step():
    while not over():
        beat()
        time.sleep(0.02)
        if os.fork():
            os._exit(0)
        if os.getpgrp() != os.getpid():
            os.setsid()
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in range(60):
    fork(step, session=True)
ready(); rest()
""",
        Control.SURVIVES,
    ),
    Adversary(
        "stops-itself",
        "fork(lambda: (time.sleep(0.05), ready())); os.kill(os.getpid(), signal.SIGSTOP); rest()",
        Control.STUBBORN,
    ),
    Adversary(
        "twenty-stopped-sessions",
        """
def stopped():
    os.kill(os.getpid(), signal.SIGSTOP)
    rest()
for _ in range(20):
    daemon(stopped)
ready(); rest()
""",
        Control.SURVIVES,
    ),
    Adversary(
        "leader-leaves-on-term-member-stays",
        """
def member():
    deaf(); rest()
fork(member, session=True); ready(); rest()
""",
        Control.SURVIVES,
    ),
    Adversary(
        "closes-its-output",
        "deaf(); ready()\nfor number in (0, 1, 2):\n    os.close(number)\nrest()",
        Control.SILENT,
    ),
    Adversary(
        "floods-both-streams",
        """
deaf(); ready()
def flood(number):
    block = b"y" * 65536
    while not over():
        os.write(number, block)
fork(lambda: flood(2)); flood(1)
""",
        Control.STUBBORN,
    ),
    Adversary(
        "fork-and-exec-storm",
        """
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
deaf()
def sleep():
    os.execv("/bin/sleep", ["sleep", "30"])
for _ in range(5):
    fork(sleep, session=True)
def storm():
    while not over():
        fork(lambda: os.execv("/bin/true", ["true"]), session=True)
        time.sleep(0.001)
fork(storm, session=True); ready(); storm()
""",
        Control.SURVIVES,
    ),
    Adversary(
        "vfork-child-that-never-execs",
        """
CLONE_VM, CLONE_VFORK = 0x100, 0x4000
clone(CLONE_VM | CLONE_VFORK | signal.SIGCHLD)
# The parent is asleep in the kernel; what runs here is the child, on its memory.
signal.signal(signal.SIGTERM, signal.SIG_IGN)
ready(); rest()
""",
        Control.SURVIVES,
    ),
    Adversary(
        "main-thread-gone-others-run",
        """
import threading
deaf()
for _ in range(8):
    threading.Thread(target=rest).start()
ready()
LIBC.syscall(93 if ARM else 60, 0)
""",
        Control.STUBBORN,
    ),
    Adversary(
        "child-cloned-as-a-sibling",
        """
CLONE_PARENT = 0x8000
if clone(CLONE_PARENT | signal.SIGCHLD) == 0:
    deaf(); os.setsid(); rest()
ready(); rest()
""",
        Control.SURVIVES,
    ),
    Adversary(
        "child-that-sends-no-signal",
        """
if clone(0) == 0:
    deaf(); os.setsid(); rest()
ready(); rest()
""",
        Control.SURVIVES,
    ),
    Adversary(
        "subreaper-inside",
        """
PR_SET_CHILD_SUBREAPER = 36
def nest():
    deaf()
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for _ in range(3):
        daemon()
    rest()
fork(nest, session=True)
time.sleep(0.05)
ready(); rest()
""",
        Control.SURVIVES,
    ),
)
BY_NAME = {adversary.name: adversary for adversary in ADVERSARIES}
