#!/usr/bin/env python3
"""Try to break out of a sandbox in harmless ways, and report each attempt.

Standard library only, Python 3.8 or newer. Every attempt is one function that returns a note when it worked,
raises OSError when it was stopped, and raises Unknown when it can't tell. It undoes at once what it did.
"""

import argparse
import contextlib
import ctypes
import errno
import json
import os
import pwd
import resource
import socket
import stat
import sys
import time
from pathlib import Path

MARK = ".escape-artist-{}-{}".format(os.getpid(), time.monotonic_ns())
SELF = Path(__file__).resolve()
LINGER_SECONDS = 5
# Never used for traffic: reserved for documentation (RFC 5737), and only looked up in the routing table.
FAR_AWAY = ("198.51.100.1", 53)

# Numbers from include/uapi/asm-generic/unistd.h and arch/x86/entry/syscalls/syscall_64.tbl; those from 424 on are
# the same on every machine.
PIDFD_OPEN, PIDFD_GETFD, IO_URING_SETUP = 434, 438, 425
PTRACE_SEIZE = 0x4206  # attaches without stopping the process
CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000

LIBC = ctypes.CDLL(None, use_errno=True)
ATTEMPTS = []


class Unknown(Exception):
    """It can't be told whether this attempt would have worked."""


class Options(argparse.Namespace):
    """The targets; `need` says which option is missing."""

    def need(self, option):
        value = getattr(self, option)
        if value is None:
            raise Unknown("no target: give --{}".format(option))
        return value


def attempt(group, title):
    def add(function):
        ATTEMPTS.append((group, title, function))
        return function

    return add


def call(name, *arguments):
    """Call the C library; raise OSError with its errno when it answers -1."""
    function = getattr(LIBC, name, None)
    if function is None:
        raise Unknown("this system has no {}()".format(name))
    ctypes.set_errno(0)
    function.restype = ctypes.c_long
    answer = function(*arguments)
    if answer == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return answer


def syscall(number, *arguments):
    if sys.platform != "linux":
        raise Unknown("Linux only")
    return call("syscall", ctypes.c_long(number), *arguments)


def in_child(work):
    """Do `work` in a process that ends right after it, for what can't be undone; raise what it raised."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            os.close(reader)
            try:
                outcome = {"note": work()}
            except OSError as reason:
                outcome = {"errno": reason.errno or 0}
            except Unknown as reason:
                outcome = {"unknown": str(reason)}
            os.write(writer, json.dumps(outcome).encode())
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as stream:
        answer = stream.read()
    _, status = os.waitpid(child, 0)
    if not answer:
        raise OSError(errno.EPERM, "the process was ended, wait status {}".format(status))
    outcome = json.loads(answer)
    if "errno" in outcome:
        raise OSError(outcome["errno"], os.strerror(outcome["errno"]))
    if "unknown" in outcome:
        raise Unknown(outcome["unknown"])
    return outcome["note"]


def first_byte(path):
    with open(path, "rb") as stream:
        stream.read(1)
    return "read {}".format(path)


def plant(folder):
    """Make an empty marker file and remove it."""
    marker = Path(folder) / MARK
    os.close(os.open(str(marker), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    marker.unlink()
    return "made a file in {}".format(folder)


def open_for_writing(path):
    """Open an existing file for writing, and write nothing."""
    os.close(os.open(str(path), os.O_WRONLY | os.O_APPEND))
    return "opened {} for writing".format(path)


def home(options):
    """The person's home, not the private one that a sandbox puts into HOME."""
    if options.home is None:
        try:
            folder = Path(pwd.getpwuid(os.getuid()).pw_dir)
        except KeyError:
            raise Unknown("no target: give --home") from None
        if str(folder) == os.environ.get("TMPDIR"):  # all the names there are lead to the private one
            raise OSError(errno.ENOENT, "the person's home is not to be found")
        return folder
    return Path(options.home)


def ways(folder):
    """The names in a folder that lead to the run's own paths; a sandbox with a tree of its own shows just these."""
    own = [Path.cwd(), SELF] + [Path(os.path.realpath(os.environ.get(name, "/"))) for name in ("TMPDIR", "HOME")]
    own += [Path(path) for path in (sys.executable, sys.prefix, sys.base_prefix, os.path.realpath(sys.executable))]
    depth = len(folder.parts)
    return {path.parts[depth] for path in own if path.parts[:depth] == folder.parts and len(path.parts) > depth}


def outsider(options):
    """A process outside the run."""
    if options.pid is not None:
        return options.pid
    if os.getppid() == 1:  # inside a process namespace this is the run's own init
        others = [int(name) for name in os.listdir("/proc") if name.isdigit()] if os.path.isdir("/proc") else []
        others = [pid for pid in others if pid not in (1, os.getpid())]
        if not others:
            raise OSError(errno.ESRCH, "no process but the run's own is to be seen")
        return min(others)
    return os.getppid()


def victim(options):
    """A file of the caller's that lies outside every write path; the script's own as a last resort."""
    return Path(options.canary) if options.canary is not None else SELF


# --- read secrets


@attempt("read secrets", "the caller's secret file")
def read_canary(options):
    return first_byte(options.need("canary"))


@attempt("read secrets", "the names in the home folder")
def list_home(options):
    names = set(os.listdir(str(home(options)))) - ways(home(options))
    if not names:
        raise OSError(errno.ENOENT, "nothing but the way to the run's own folders")
    return "listed {} names in {}".format(len(names), home(options))


@attempt("read secrets", "SSH keys")
def read_ssh(options):
    folder = home(options) / ".ssh"
    return "listed {} names in {}".format(len(os.listdir(str(folder))), folder)


@attempt("read secrets", "/etc/shadow")
def read_shadow(options):
    return first_byte("/etc/shadow")


@attempt("read secrets", "the secret file through a link in ./out")
def read_through_link(options):
    target, folder = options.need("canary"), Path("out")
    made = not folder.exists()
    folder.mkdir(exist_ok=True)
    link = folder / MARK
    try:
        link.symlink_to(target)
        return first_byte(link)
    finally:
        with contextlib.suppress(OSError):
            link.unlink()
        if made:
            folder.rmdir()


@attempt("read secrets", "the caller's environment")
def read_own_environment(options):
    words = ("TOKEN", "SECRET", "PASSWORD", "API_KEY")
    leaked = sorted(name for name in os.environ if any(word in name.upper() for word in words))
    if not leaked:
        raise OSError(errno.ENOENT, "no such variable")
    return "has {}".format(", ".join(leaked))


@attempt("read secrets", "the environment of another process")
def read_environ(options):
    return first_byte("/proc/{}/environ".format(outsider(options)))


@attempt("read secrets", "a descriptor left open by the caller")
def read_descriptor(options):
    events = os.environ.get("SKILLRUN_EVENTS_FD")  # the one pipe a run may have beside the three
    for number in range(3, 256):
        if str(number) == events:
            continue
        with contextlib.suppress(OSError):
            os.fstat(number)
            return "descriptor {} is open".format(number)
    raise OSError(errno.EBADF, "none is open")


# --- write outside


@attempt("write outside", "a file in the home folder")
def write_home(options):
    return plant(home(options))


@attempt("write outside", "a file in the top of the workspace")
def write_workspace(options):
    return plant(Path.cwd())


@attempt("write outside", "its own SKILL.md")
def write_manifest(options):
    return open_for_writing(SELF.parent.parent / "SKILL.md")


@attempt("write outside", "a new script beside itself")
def write_scripts(options):
    return plant(SELF.parent)


@attempt("write outside", "the shell's start file")
def write_start_file(options):
    stopped = OSError(errno.ENOENT, "no such file")
    for name in (".bashrc", ".profile", ".zshrc"):
        try:
            return open_for_writing(home(options) / name)
        except OSError as reason:
            stopped = reason
    raise stopped


@attempt("write outside", "/etc/hosts")
def write_hosts(options):
    return open_for_writing("/etc/hosts")


@attempt("write outside", "the caller's secret file")
def write_canary(options):
    return open_for_writing(options.need("canary"))


@attempt("write outside", "a file in the shared /tmp")
def write_tmp(options):
    note = plant("/tmp")
    if private_tmp():
        raise OSError(errno.EXDEV, "/tmp is the run's own")
    return note


def private_tmp():
    """Whether /tmp was mounted for this run: a mount of its own, with nothing in it but what leads to the run."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    return any(line.split()[4] == "/tmp" for line in mounts) and set(os.listdir("/tmp")) <= ways(Path("/tmp"))


@attempt("write outside", "the mode of a file outside")
def change_mode(options):
    target = victim(options)
    before = stat.S_IMODE(os.stat(str(target)).st_mode)
    os.chmod(str(target), before ^ stat.S_IXOTH)
    changed = stat.S_IMODE(os.stat(str(target)).st_mode) != before
    os.chmod(str(target), before)
    if not changed:  # some sandboxes answer "done" and do nothing
        raise OSError(errno.EPERM, "nothing changed")
    return "changed the mode of {} and back".format(target)


@attempt("write outside", "the time of a file outside")
def change_time(options):
    target = victim(options)
    before = os.stat(str(target))
    os.utime(str(target), ns=(before.st_atime_ns, before.st_mtime_ns + 1000000000))
    changed = os.stat(str(target)).st_mtime_ns != before.st_mtime_ns
    os.utime(str(target), ns=(before.st_atime_ns, before.st_mtime_ns))
    if not changed:
        raise OSError(errno.EPERM, "nothing changed")
    return "changed the time of {} and back".format(target)


@attempt("write outside", "a set-id program")
def make_set_id(options):
    program = Path(os.environ.get("TMPDIR", "/tmp")) / MARK
    os.close(os.open(str(program), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o700))
    try:
        os.chmod(str(program), 0o4700)
        if not program.stat().st_mode & stat.S_ISUID:
            raise OSError(errno.EPERM, "nothing changed")
        return "made a set-id file"
    finally:
        program.unlink()


# --- call home


@attempt("call home", "TCP to a port of this machine")
def call_tcp(options):
    port = options.need("port")
    socket.create_connection(("127.0.0.1", port), timeout=0.3).close()
    return "connected to 127.0.0.1:{}".format(port)


@attempt("call home", "UDP to the internet")
def call_udp(options):
    return routed(FAR_AWAY)


def routed(address):
    """Connect a UDP socket: that asks for permission and for a route, and sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as far:
        far.connect(address)
        return "a packet to {}:{} would leave".format(*address)


@attempt("call home", "the name server")
def call_dns(options):
    for line in Path("/etc/resolv.conf").read_text(encoding="utf-8", errors="replace").splitlines():
        words = line.split()
        if len(words) > 1 and words[0] == "nameserver" and ":" not in words[1]:
            return routed((words[1], 53))
    raise Unknown("no name server in /etc/resolv.conf")


@attempt("call home", "a raw packet socket")
def call_raw(options):
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()
    return "opened a raw socket"


@attempt("call home", "a service's socket file")
def call_unix(options):
    target = options.socket or "/var/run/docker.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as service:
        service.settimeout(0.3)
        service.connect(target)
    return "connected to {}".format(target)


@attempt("call home", "a service's abstract socket")
def call_abstract(options):
    name = options.need("abstract")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as service:
        service.settimeout(0.3)
        service.connect("\0" + name)
    return "connected to @{}".format(name)


# --- reach other processes


@attempt("reach other processes", "send a signal")
def send_signal(options):
    os.kill(outsider(options), 0)
    return "process {} can be signalled".format(outsider(options))


@attempt("reach other processes", "trace")
def trace(options):
    if sys.platform != "linux":
        raise Unknown("Linux only")
    target = outsider(options)

    def seize():  # the tracer's end lets the process go, unharmed
        call("ptrace", ctypes.c_long(PTRACE_SEIZE), ctypes.c_long(target), None, None)
        return "traced process {}".format(target)

    return in_child(seize)


@attempt("reach other processes", "read memory")
def read_memory(options):
    target = outsider(options)
    buffer = ctypes.create_string_buffer(1)
    local = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 1)
    remote = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 1)
    try:
        call("process_vm_readv", ctypes.c_int(target), local, ctypes.c_ulong(1), remote, ctypes.c_ulong(1), ctypes.c_ulong(0))
    except OSError as reason:
        if reason.errno != errno.EFAULT:  # allowed to look, only nothing lies at this address
            raise
    return "the memory of process {} is readable".format(target)


@attempt("reach other processes", "take a descriptor")
def take_descriptor(options):
    handle = syscall(PIDFD_OPEN, ctypes.c_int(outsider(options)), ctypes.c_uint(0))
    try:
        os.close(syscall(PIDFD_GETFD, ctypes.c_int(handle), ctypes.c_int(0), ctypes.c_uint(0)))
    finally:
        os.close(handle)
    return "took a descriptor of process {}".format(outsider(options))


@attempt("reach other processes", "change limits")
def change_limits(options):
    if not hasattr(resource, "prlimit"):
        raise Unknown("this system has no prlimit()")
    resource.prlimit(outsider(options), resource.RLIMIT_CORE)  # reading asks for the same permission as changing
    return "the limits of process {} can be reached".format(outsider(options))


# --- reach the kernel


@attempt("reach the kernel", "io_uring, which no filter sees")
def io_uring(options):
    parameters = ctypes.create_string_buffer(120)  # struct io_uring_params, all zero
    os.close(syscall(IO_URING_SETUP, ctypes.c_uint(1), parameters))
    return "made a ring"


@attempt("reach the kernel", "a new user namespace")
def user_namespace(options):
    def unshare():
        call("unshare", ctypes.c_int(CLONE_NEWUSER))
        return "root in a namespace of its own"

    return in_child(unshare)


@attempt("reach the kernel", "mount a file system")
def mount(options):
    def namespace_and_mount():
        # Without a mount namespace of its own nothing is mounted, so nothing can be left behind.
        flags = CLONE_NEWNS if os.getuid() == 0 else CLONE_NEWNS | CLONE_NEWUSER
        call("unshare", ctypes.c_int(flags))
        # An unknown type: a caller without the right gets EPERM, one with it gets ENODEV, nobody gets a mount.
        try:
            call("mount", b"none", b"/", b"no-such-type", ctypes.c_ulong(0), None)
        except OSError as reason:
            if reason.errno != errno.ENODEV:
                raise
        return "allowed to mount"

    return in_child(namespace_and_mount)


@attempt("reach the kernel", "the caller's terminal")
def terminal(options):
    os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    return "opened /dev/tty"


# --- outlive the run


@attempt("outlive the run", "a daemon in a session of its own")
def daemon(options):
    """Leave a process that holds the output open; only somebody outside can see whether it lives on."""
    arguments = [sys.executable, str(SELF), "--linger", options.token or MARK]

    def detach():
        os.setsid()
        if os.fork() == 0:
            try:
                os.execv(sys.executable, arguments)
            finally:
                os._exit(127)
        return "started"

    in_child(detach)
    raise Unknown("left a process for {} s; see from outside whether it is alive".format(LINGER_SECONDS))


def judge(function, options):
    """Make one attempt; return its status, the name of the error or None, and a note."""
    try:
        return "open", None, function(options)
    except Unknown as reason:
        return "unknown", None, str(reason)
    except OSError as reason:
        name = errno.errorcode.get(reason.errno, "timeout" if reason.errno is None else str(reason.errno))
        return "blocked", name, reason.strerror or str(reason)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--canary", metavar="FILE", help="a secret file outside every granted path")
    parser.add_argument("--home", metavar="DIR", help="the home folder to attack")
    parser.add_argument("--pid", type=int, help="a process outside the run; the parent by default")
    parser.add_argument("--port", type=int, help="a TCP port of 127.0.0.1 that somebody listens on")
    parser.add_argument("--socket", metavar="FILE", help="a Unix socket; Docker's by default")
    parser.add_argument("--abstract", metavar="NAME", help="an abstract Unix socket")
    parser.add_argument("--token", help="a word in the arguments of the process left behind")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--linger", metavar="TOKEN", help=argparse.SUPPRESS)
    return parser.parse_args(namespace=Options())


def table(rows):
    lines, heading = [], None
    for row in rows:
        if row["status"] == "unknown":
            continue
        if row["group"] != heading:
            heading = row["group"]
            lines.append(heading)
        shown = "OPEN" if row["status"] == "open" else row["status"]
        note = "{}: {}".format(row["errno"], row["note"]) if row["errno"] else row["note"]
        lines.append("  {:8} {:42} {}".format(shown, row["attempt"], note))
    return "\n".join(lines)


def main():
    options = parse_arguments()
    if options.linger is not None:
        time.sleep(LINGER_SECONDS)
        return 0
    rows = []
    for group, title, function in ATTEMPTS:
        status, name, note = judge(function, options)
        rows.append({"group": group, "attempt": title, "status": status, "errno": name, "note": note})
    counts = {status: sum(row["status"] == status for row in rows) for status in ("blocked", "open", "unknown")}
    if options.json:
        print(json.dumps(dict(counts, attempts=rows), indent=2))
    else:
        print(table(rows))
        print("{blocked} blocked, {open} OPEN".format(**counts))
        if counts["unknown"]:
            print("{unknown} more need a target from outside or can only be judged there: see bait.py".format(**counts))
    return 1 if counts["open"] else 0


if __name__ == "__main__":
    sys.exit(main())
