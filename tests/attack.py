"""What the tests that attack a sandbox share: parties, scenes, victims, and attacks with their controls.

A *party* is a user who attacks: root, or an ordinary one. Each has a worker process of that user, which runs
skills confined; the tests themselves stay outside and judge from there. A *scene* is a fresh home, workspace
and skill root of one party. Every attack runs twice: confined, and plainly as a control, which must succeed.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.util
import json
import os
import secrets
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ROOT = Path(__file__).resolve().parent.parent
WORKER = Path(__file__).resolve().parent / "escape" / "worker.py"
USER_ID = 12345
SUITE_IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
# As root both halves run; an ordinary user can only be itself.
PARTIES = ("root", "user") if SUITE_IS_ROOT else ("user",)
# Both levels of the Linux backend are attacked; tests about one of them say so with the mark `level`.
LEVELS = (1, 2)
REQUIRED = frozenset(filter(None, os.environ.get("SKILLRUN_REQUIRE_BACKENDS", "").split(",")))
FRONT = 'fs_read: ["."]\nfs_write: ["."]'  # an attack asks for all of its workspace unless it says otherwise
ATTEMPT = "ATTEMPT"  # printed by every attack before its first act: a script that never ran proves nothing

_PRELUDE = '''
import array, ctypes, errno, fcntl, mmap, os, signal, socket, stat, struct, subprocess, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
# <asm/unistd_64.h>, <asm-generic/unistd.h>
CALLS = {"ptrace": (101, 117), "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264),
    "openat2": (437, 437), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "add_key": (248, 217),
    "keyctl": (250, 219), "shmget": (29, 194), "shmat": (30, 196), "semget": (64, 190), "semctl": (66, 191),
    "msgget": (68, 186), "msgrcv": (70, 188), "mq_open": (240, 180), "mq_timedreceive": (243, 183),
    "clone": (56, 220), "clone3": (435, 435), "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40),
    "chroot": (161, 51), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438), "pidfd_open": (434, 434), "setpriority": (141, 140), "ioprio_set": (251, 30),
    "setxattr": (188, 5), "removexattr": (197, 14), "pidfd_send_signal": (424, 424), "getppid": (110, 173),
    "fsopen": (430, 430), "open_tree": (428, 428), "kcmp": (312, 272), "rt_sigqueueinfo": (129, 138),
    "utimensat": (280, 88), "perf_event_open": (298, 241), "bpf": (321, 280), "userfaultfd": (323, 282),
    "memfd_create": (319, 279), "setxattrat": (463, 463), "file_setattr": (469, 469), "tgkill": (234, 131),
    "process_madvise": (440, 440), "fchmodat2": (452, 452), "inotify_init1": (294, 26),
    "inotify_add_watch": (254, 27), "sched_setattr": (314, 274), "mkdirat": (258, 34), "socket": (41, 198)}
COLUMN = {"x86_64": 0, "aarch64": 1}[os.uname().machine]
def call(name, *args):
    """Make a system call; returns its result, raises OSError."""
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    got = libc.syscall(ctypes.c_long(CALLS[name][COLUMN]), *words)
    if got < 0:
        number = ctypes.get_errno()
        raise OSError(number, name + ": " + os.strerror(number))
    return got
args = sys.argv[1:]
print("ATTEMPT", flush=True)
'''


def missing(backend: str, reason: str) -> None:
    """Skip because a backend can't be tried here; a failure where the environment says that it must be."""
    if backend in REQUIRED:
        pytest.fail(f"SKILLRUN_REQUIRE_BACKENDS names {backend}, and {reason}", pytrace=False)
    pytest.skip(f"backend {backend}: {reason}")


@dataclass(frozen=True, slots=True)
class Run:
    """What became of one run, confined or plain. `told` is everything the worker said about a confined one."""

    out: str
    err: str
    code: int | None
    told: Mapping[str, Any] = field(default_factory=dict)

    @property
    def said(self) -> str:
        """Both streams."""
        return self.out + self.err

    @property
    def attempted(self) -> bool:
        """Whether the script came to its attack."""
        return ATTEMPT in self.out

    @property
    def rules(self) -> set[str]:
        """The rules of the violations and warnings."""
        return {one["rule"] for kind in ("violations", "warnings") for one in self.told.get(kind, ())}

    def violated(self, path: Path) -> bool:
        """Whether a violation names a path."""
        return any(one["path"] == str(path) for one in self.told["violations"])


class Party:
    """A user who attacks, with a worker that runs skills for it."""

    def __init__(self, name: str, uid: int, outfit: Path) -> None:
        self.name = name
        self.uid = uid
        self.outfit = outfit
        self.other = SUITE_IS_ROOT and uid != 0  # whether the tests have to become somebody else for it
        self.python = self._interpreter()
        if (
            self.python is not None
        ):  # ahead, since a worker may not write there and each launcher would do it again
            compiling = [self.python, "-m", "compileall", "-q", str(outfit)]
            subprocess.run(compiling, cwd="/", check=True, env={"PATH": "/usr/bin:/bin"})
        self.lacking: dict[int, str] = {}  # why a level can't be tried here
        self._workers: list[subprocess.Popen[str]] = []

    def identity(self) -> dict[str, Any]:
        """Arguments that make subprocess start something as this user."""
        return {"user": self.uid, "group": self.uid, "extra_groups": []} if self.other else {}

    def _interpreter(self) -> str | None:
        """Find a Python that this user may execute and whose library it can read; None if there is none.

        The one of the tests often lies in root's home folder, where nobody else can go.
        """
        known = [
            sys.executable,
            f"{sys.base_prefix}/bin/python3",
            "/usr/bin/python3",
            "/usr/local/bin/python3",
        ]
        for candidate in known:
            probe = "import ctypes, json, sys; sys.exit(sys.version_info < (3, 10))"
            with contextlib.suppress(OSError):
                done = subprocess.run(
                    [candidate, "-I", "-c", probe],
                    **self.identity(),
                    cwd="/",
                    capture_output=True,
                    check=False,
                )
                if done.returncode == 0:
                    return candidate
        return None

    def start(self, **more: Any) -> subprocess.Popen[str]:
        """Start a worker of this party."""
        assert self.python is not None
        return subprocess.Popen(
            [self.python, "-B", str(self.outfit / "worker.py")],
            **self.identity(),
            cwd="/",
            # A variable that no script may ever see: the library must not read the process's environment.
            env={
                "PYTHONPATH": str(self.outfit),
                "PATH": "/usr/bin:/bin",
                "SECRET_OF_THE_WORKER": "worker-env",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            **more,
        )

    def ask(
        self, request: Mapping[str, Any], *, worker: subprocess.Popen[str] | None = None
    ) -> dict[str, Any]:
        """Send a request to a worker and return its answer; the party's own unless another is given."""
        if worker is None:
            if not self._workers or self._workers[0].poll() is not None:
                self.close()  # an attack may have killed it, in a control even rightly
                self._workers = [self.start()]
            worker = self._workers[0]
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write(json.dumps(request) + "\n")
        worker.stdin.flush()
        line = worker.stdout.readline()
        assert line, "the worker was killed: an attack reached it"
        answer: dict[str, Any] = json.loads(line)
        assert "crash" not in answer, answer["crash"]
        return answer

    def close(self) -> None:
        """End the workers."""
        for worker in self._workers:
            end(worker)
        self._workers = []


def end(worker: subprocess.Popen[str]) -> None:
    """Let a worker go, and wait."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    with contextlib.suppress(OSError):
        worker.stdin.close()
    try:
        worker.wait(20)
    except subprocess.TimeoutExpired:
        worker.kill()
        worker.wait()
    worker.stdout.close()


def open_folder() -> Path:
    """Make a folder that every user can go into, so never below root's own temporary folder."""
    for candidate in (Path(tempfile.gettempdir()).resolve(), Path("/tmp"), Path("/var/tmp")):
        chain = (candidate, *candidate.parents)
        if candidate.is_dir() and all(folder.stat().st_mode & stat.S_IXOTH for folder in chain):
            made = Path(tempfile.mkdtemp(prefix="skillrun-escape-", dir=candidate))
            made.chmod(0o755)
            return made
    raise AssertionError("no folder on this machine can be entered by everybody")


def make_outfit(base: Path) -> Path:
    """Copy what the worker needs to where every user can read it: the package, its data, PyYAML and Jinja2.

    Only the Python part of each is taken, so the outfit fits any interpreter, whatever the tests run in.
    """
    outfit = base / "outfit"
    outfit.mkdir(mode=0o755)
    for name in ("skillrun", "profiles", "skills"):
        shutil.copytree(ROOT / name, outfit / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    for name in ("yaml", "jinja2", "markupsafe"):
        found = importlib.util.find_spec(name)
        assert found is not None
        assert found.origin is not None
        source = Path(found.origin).parent
        shutil.copytree(source, outfit / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    shutil.copy(WORKER, outfit / "worker.py")
    for folder, folders, files in os.walk(outfit):
        for name in folders:
            Path(folder, name).chmod(0o755)
        for name in files:
            Path(folder, name).chmod(0o644)
    return outfit


@functools.cache
def script_python() -> str:
    """Return the Python that attack scripts are started with: one that every user may execute."""
    for candidate in ("/usr/bin/python3", f"{sys.base_prefix}/bin/python3"):
        if os.access(candidate, os.X_OK):
            return candidate
    raise AssertionError("no Python for attack scripts")


class Scene:
    """A home, a workspace, a skill root and a folder outside of all of them, owned by one party."""

    def __init__(self, party: Party, base: Path, *, level: int = 1) -> None:
        self.party = party
        self.base = base
        self.level = level
        self.home = base / "home"
        self.workspace = base / "work"
        self.skills = base / "skills"
        self.outside = base / "outside"
        self.temporary = base / "tmp"
        self.key = "attack"
        self.name = "attack.py"
        self.ceiling: str | Path | None = "dev"  # read and write the whole workspace, no network
        self.environ: dict[str, str] = {"PATH": "/usr/bin:/bin"}
        self.options: dict[str, Any] = {}
        for folder in (self.home, self.workspace, self.skills, self.outside, self.temporary):
            self.folder(folder)

    def own(self, path: Path) -> Path:
        """Give a path to the party."""
        if self.party.other:
            os.chown(path, self.party.uid, self.party.uid, follow_symlinks=False)
        return path

    def folder(self, path: Path, mode: int = 0o700) -> Path:
        """Make a folder, and those above it, for the party."""
        for above in (*reversed(path.parents), path):
            if self.base in above.parents and not above.exists():
                above.mkdir()
                above.chmod(0o700)
                self.own(above)
        path.chmod(mode)
        return path

    def file(self, path: Path, content: str = "as it was\n", mode: int = 0o600) -> Path:
        """Write a file of the party."""
        self.folder(path.parent, stat.S_IMODE(path.parent.stat().st_mode) if path.parent.exists() else 0o700)
        path.write_text(content)
        path.chmod(mode)
        return self.own(path)

    def link(self, path: Path, target: Path | str) -> Path:
        """Make a link of the party."""
        self.folder(path.parent)
        path.symlink_to(target)
        return self.own(path)

    def secret(self, path: Path) -> str:
        """Write a file that holds a token, and return the token."""
        token = secrets.token_hex(12)
        self.file(path, f"secret {token}\n")
        return token

    def script(
        self,
        body: str,
        *,
        front: str = FRONT,
        skill: Path | None = None,
        prelude: bool = True,
    ) -> Path:
        """Write the skill that attacks: its request and its one script. Plain Python unless it has a shebang."""
        folder = skill or self.skills / self.key
        self.file(folder / "SKILL.md", f"---\nname: {folder.name}\ndescription: d\n{front}\n---\n")
        if body.startswith("#!"):
            self.name = "attack.sh"
            text = body
        else:
            self.name = "attack.py"
            text = f"#!{script_python()}\n{_PRELUDE if prelude else ''}\n{body}\n"
        return self.file(folder / "scripts" / self.name, text, 0o700)

    @property
    def path(self) -> Path:
        """The attack's script."""
        return self.skills / self.key / "scripts" / self.name

    def request(self, arguments: Sequence[object], **options: Any) -> dict[str, Any]:
        """Write a request for the worker."""
        request: dict[str, Any] = {
            "op": "run",
            "workspace": str(self.workspace),
            "skills": [str(self.skills)],
            "ceiling": str(self.ceiling) if self.ceiling is not None else None,
            "skill": self.key,
            "script": self.name,
            "arguments": [str(one) for one in arguments],
            "environ": self.environ,
            "home": str(self.home),
            "temporary": str(self.temporary),
            "backend": f"linux-{self.level}",
        }
        return {**request, **self.options, **options}

    def confined(self, *arguments: object, worker: Any = None, **options: Any) -> Run:
        """Run the attack confined. A run that is refused or does not start is told in `told`."""
        told = self.party.ask(self.request(arguments, **options), worker=worker)
        return Run(told.get("out", ""), told.get("err", ""), told.get("exit_code"), told)

    def shape(self) -> dict[str, str]:
        """Return an environment of the shape that a confined script gets."""
        place = {"HOME": str(self.outside), "TMPDIR": str(self.outside), "WORKSPACE": str(self.workspace)}
        return {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", **place}

    def plainly(self, *arguments: object, under: Sequence[str] = (), **more: Any) -> Run:
        """Run the same script with the same arguments and nothing around it: the control."""
        words = [*under, str(self.path), *(str(one) for one in arguments)]
        settings = {"stdin": subprocess.DEVNULL, "env": self.shape(), **self.party.identity(), **more}
        done = subprocess.run(
            words, cwd=self.workspace, capture_output=True, text=True, timeout=60, check=False, **settings
        )
        return Run(done.stdout, done.stderr, done.returncode)

    @contextlib.contextmanager
    def victim(self, *, marked: bool = False) -> Iterator[Victim]:
        """Give a process of the same user that the attack is not part of, with secrets in all its pockets."""
        with Victim.started(self, marked=marked) as victim:
            yield victim


_VICTIM = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(0x59616d61, ctypes.c_ulong(-1 & 0xFFFFFFFFFFFFFFFF), 0, 0, 0)  # Yama: anybody may trace
token = sys.stdin.readline().strip()
memory = ctypes.create_string_buffer(b"secret " + token.encode())
file = os.memfd_create("victim")
os.write(file, b"secret " + token.encode())
print(ctypes.addressof(memory), file, flush=True)
sys.stdin.readline()
"""


@dataclass(slots=True)
class Victim:
    """A process outside. `token` is in its memory, `address` says where, and in its descriptor `file`."""

    process: subprocess.Popen[str]
    token: str
    words: str  # on its command line
    variable: str  # in its environment
    address: int = 0
    file: int = 0

    @classmethod
    @contextlib.contextmanager
    def started(cls, scene: Scene, *, marked: bool = False) -> Iterator[Victim]:
        """Start one and end it."""
        token, words, variable = (secrets.token_hex(12) for _ in range(3))
        process = subprocess.Popen(
            [script_python(), "-c", _VICTIM, words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"VICTIM": variable, "PATH": "/usr/bin:/bin"},
            cwd="/",
            start_new_session=marked,
            **scene.party.identity(),
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(token + "\n")
            process.stdin.flush()
            address, file = map(int, process.stdout.readline().split())
            yield cls(process, token, words, variable, address, file)
        finally:
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    def alive(self) -> bool:
        """Whether no signal has ended it; a signal sent just now gets a moment to arrive."""
        time.sleep(0.1)
        return self.process.poll() is None


@dataclass(frozen=True, slots=True)
class State:
    """All that a file outside must not lose: what it holds, its names, mode, owner, times, attributes, flags."""

    text: bytes
    facts: tuple[int, ...]
    attributes: tuple[tuple[str, bytes], ...]

    @classmethod
    def of(cls, path: Path) -> State | None:
        """Look at a file; None when it is not there. The access time is left out: reading changes it."""
        try:
            found = path.lstat()
        except FileNotFoundError:
            return None
        text = path.read_bytes() if stat.S_ISREG(found.st_mode) else b""
        if stat.S_ISDIR(found.st_mode):
            text = "\0".join(sorted(entry.name for entry in path.iterdir())).encode()
        if stat.S_ISLNK(found.st_mode):
            text = str(path.readlink()).encode()
        facts = (found.st_ino, found.st_mode, found.st_uid, found.st_gid, found.st_nlink, found.st_mtime_ns)
        names = os.listxattr(path, follow_symlinks=False)
        attributes = tuple((n, os.getxattr(path, n, follow_symlinks=False)) for n in sorted(names))
        return cls(text, (*facts, found.st_size, flags_of(path)), attributes)


def flags_of(path: Path) -> int:
    """Return the inode flags of a file or folder (FS_IOC_GETFLAGS), 0 where there are none."""
    import fcntl

    if path.is_symlink() or not (path.is_file() or path.is_dir()):
        return 0
    word = bytearray(8)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.ioctl(descriptor, 0x80086601, word)
    except OSError:
        return 0
    finally:
        os.close(descriptor)
    return int.from_bytes(word, sys.byteorder)


def blocks_reading(scene: Scene, body: str, token: str, *arguments: object, **options: Any) -> Run:
    """Run an attack that wants to print a token: the control prints it, the confined run does not."""
    scene.script(body, front=options.pop("front", FRONT))
    run = scene.confined(*arguments, **options)
    assert run.attempted, run
    # A traceback quotes the script, so a word of the attack's own counts only where it was printed.
    said = run.out if token in body else run.said
    assert token not in said, f"the confined script got what it wanted: {run}"
    control = scene.plainly(*arguments)
    assert token in control.out, f"the control did not succeed: {control}"
    return run


def blocks_change(scene: Scene, body: str, target: Path, *arguments: object, **options: Any) -> Run:
    """Run an attack that wants to change something outside: the control changes it, the confined run does not."""
    scene.script(body, front=options.pop("front", FRONT))
    before = State.of(target)
    run = scene.confined(*(arguments or (target,)), **options)
    assert run.attempted, run
    assert State.of(target) == before, f"the confined script changed {target}"
    control = scene.plainly(*(arguments or (target,)))
    assert State.of(target) != before, f"the control did not succeed: {control}"
    return run


def libc() -> ctypes.CDLL:
    """Return the C library, for judges that need a call Python does not have."""
    return ctypes.CDLL(None, use_errno=True)
