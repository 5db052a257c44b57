"""What a traced run can do to its owner, which hears of each call: no harm, no waiting, nothing kept open."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import resource
import select
import signal
import socket
import struct
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from arena import Holdings, eventually

from skillrun.confine import calls, child
from skillrun.launch.asked import Asked, Asking
from skillrun.launch.capture import Keep
from skillrun.launch.denials import Suspect
from skillrun.launch.notify import Notify
from skillrun.launch.physical import Walk
from skillrun.running.call import Call
from skillrun.running.listener import Listener
from skillrun.sandbox.linux.telling import WAYS, program

if TYPE_CHECKING:
    from arena import Arena

LEVELS = ("level-1", "level-2")


def test_a_signal_does_not_interrupt_a_call_that_was_told() -> None:
    """Once the owner has heard of a call it is done, whatever timer goes off: an open(2) that fails so is expected by nobody."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            ours.close()
            signal.signal(signal.SIGUSR1, lambda *_: None)
            calls.prctl(calls.PR_SET_NO_NEW_PRIVS, 1)
            socket.send_fds(theirs, [b"-"], [calls.install_listener(program(os.uname().machine))])
            libc = ctypes.CDLL(None, use_errno=True)
            code = ctypes.get_errno() if libc.open(b"/", 0) < 0 else 0
        finally:
            os._exit(code)
    theirs.close()
    _, (listener,), _, _ = socket.recv_fds(ours, 1, 1)
    ours.close()
    told = bytearray(80)
    fcntl.ioctl(listener, 0xC0502100, told)  # SECCOMP_IOCTL_NOTIF_RECV
    os.kill(pid, signal.SIGUSR1)
    time.sleep(0.2)
    with contextlib.suppress(FileNotFoundError):  # the call was given up
        fcntl.ioctl(listener, 0xC0182101, told[:8] + struct.pack("=qiI", 0, 0, 1))  # and _SEND, to go on
    os.close(listener)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_long_paths_without_end_take_little_room(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of fourteen million characters in paths two million are kept."""
    kept: list[int] = []

    def counted(_: Asking, asked: tuple[Asked, ...]) -> tuple[Suspect, ...]:
        kept.append(sum(len(one.path or "") for one in asked))
        return ()

    arena.script(
        "import ctypes\n"
        "libc = ctypes.CDLL(None)\n"
        "for n in range(4000): libc.open(b'/absent' * 500 + b'%d' % n, 0)\n"
        "raise SystemExit(3)\n"
    )
    monkeypatch.setattr(Asking, "denied", counted)
    with arena.runner("level-1") as runner:
        assert runner.run("demo", trace=True).exit_code == 3
    assert 1 << 20 < kept[0] < 3 << 20
    arena.assert_clean()


def test_looking_takes_a_moment_at_most() -> None:
    """What a script asked for can take long to look up; after two seconds the rest is not."""
    looked: list[str] = []

    class Slow:
        def to(self, path: str, **_: bool) -> None:
            looked.append(path)
            time.sleep(0.1)

    unused: Any = None
    asked = [Asked(f"/{number}", WAYS["read"]) for number in range(100)]
    slow: Any = Slow()
    assert not Asking(unused, unused, unused, slow).denied(asked)
    assert 5 < len(looked) < 40


def test_a_walk_is_bounded_and_keeps_out_of_what_is_mounted_when_asked_for(tmp_path: Path) -> None:
    """Two links that lead to each other's folders twice would be a walk of 2 to the power of their number."""
    for number in range(60):
        (tmp_path / f"b{number}").symlink_to(f"b{number + 1}/../b{number + 1}")
    (tmp_path / "b60").mkdir()
    (tmp_path / "auto").mkdir()
    (tmp_path / "to").symlink_to("auto/host")
    walk = Walk(frozenset({str(tmp_path / "auto")}))
    assert walk.to(f"{tmp_path}/b0") is None
    assert walk.to(f"{tmp_path}/b58/x/../y") == tmp_path / "b60" / "y"
    assert walk.to(f"{tmp_path}/to") is None
    assert walk.to(f"{tmp_path}/to", follows=False) == tmp_path / "to"
    assert walk.to(f"{tmp_path}/auto/../x") is None
    assert walk.to("/a" * 3000) is None


@pytest.mark.parametrize("level", LEVELS)
def test_a_fork_of_the_host_keeps_no_listening_alive(arena: Arena, level: str) -> None:
    """A copy of the host that holds all its descriptors does not keep a refused run from its end."""
    arena.script("raise SystemExit(3)")
    children: list[int] = []

    def fork(*_: object) -> None:
        pid = os.fork()
        if pid == 0:
            time.sleep(20)
            os._exit(0)
        children.append(pid)
        raise ValueError("the run is not wanted any more")

    with arena.runner(level) as runner:
        before = time.monotonic()
        with pytest.raises(ValueError, match="not wanted"):
            runner.run("demo", trace=True, on_plan=fork)
        assert time.monotonic() - before < 10
    for pid in children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    arena.assert_clean()


def test_a_listener_waits_for_a_descriptor() -> None:
    """An owner without a free descriptor takes the listener later; taken then, it would be closed and fail every call."""
    notify = Notify(os.uname().machine)
    listener, told = os.pipe()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    name = str(Path(f"/proc/self/fd/{told}").readlink())
    look = select.poll()
    look.register(told, 0)  # POLLERR once nobody holds the other end
    with socket.socket(fileno=notify.take()) as theirs:
        free = os.dup(0)
        os.close(free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
        try:
            socket.send_fds(theirs, [b"listener"], [listener])
            os.close(listener)
            before = Holdings({told: name}, 0)
            time.sleep(0.3)
            closed = look.poll(0)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert not closed
        assert eventually(lambda: name in before.leaked().values())
        (taken,) = (one for one, target in before.leaked().items() if target == name)
        assert not os.get_inheritable(taken)  # no child of the host may hold it
        os.write(told, b"x")
        assert eventually(lambda: notify.problem is not None)  # it was taken, and is none
    notify.close()
    os.close(told)


def test_without_room_for_it_a_run_is_not_traced(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run goes on, and its result says why nothing was told."""

    def none(*_: object) -> int:
        raise OSError(24, "Too many open files")

    arena.script("raise SystemExit(3)")
    monkeypatch.setattr("skillrun.launch.audit.Audit.opened", lambda _: "not here")
    monkeypatch.setattr("skillrun.launch.notify.os.eventfd", none)
    with arena.runner("level-1") as runner:
        result = runner.run("demo", trace=True)
    assert result.exit_code == 3
    warned = [one.message for one in result.warnings if one.rule == "trace-unavailable"]
    assert len(warned) == 1
    assert "Too many open files" in warned[0]
    arena.assert_clean()


def test_a_listening_that_can_not_begin_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that has no thread left keeps no descriptor of the attempt."""

    def none(_: object) -> None:
        raise RuntimeError("can't start new thread")

    before = Holdings.now()
    monkeypatch.setattr(threading.Thread, "start", none)
    with pytest.raises(RuntimeError):
        Notify(os.uname().machine)
    assert not before.leaked()


def test_the_log_is_read_while_it_is_open(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Landlock logged is taken before the log is closed."""

    class Log:
        closed = False

        def denied(self, pid: int) -> tuple[Suspect, ...]:
            assert not self.closed
            return (Suspect("read", Path(f"/of/{pid > 1}"), "kernel"),)

        def close(self) -> None:
            self.closed = True

    log = Log()
    monkeypatch.setattr("skillrun.launch.audit.Audit.opened", lambda _: log)
    arena.script("raise SystemExit(3)")
    with arena.runner("level-1") as runner:
        result = runner.run("demo", trace=True)
    assert log.closed
    assert Path("/of/True") in [one.path for one in result.denials]
    arena.assert_clean()


def test_the_socket_never_becomes_the_scripts() -> None:
    """Whatever a plan says of what is told, the last descriptor of a traced run is not one of the script's."""
    for words in ("", "zz", None):
        assert child.split({"told": words}, [5, 6, 7, 8]) == ([5, 6, 7], 8)
    assert child.split({}, [5, 6, 7, 8]) == ([5, 6, 7, 8], None)


@pytest.mark.parametrize("level", LEVELS)
def test_events_of_a_traced_run_come_over_the_fourth_descriptor(arena: Arena, level: str) -> None:
    """With events asked for, the socket of the listener is the fifth that is sent, and still not the script's."""
    arena.script(
        "import os\n"
        "def there(n):\n"
        "    try: return bool(os.fstat(n))\n"
        "    except OSError: return False\n"
        "os.write(3, b'an event')\n"
        "print([n for n in range(256) if there(n)])\n"
    )
    events = Keep(1000)
    with arena.runner(level) as runner:
        result = runner.run_call(Call("demo", trace=True), Listener(events=events))
    assert result.stdout.text == "[0, 1, 2, 3]\n", result.stderr.text
    assert events.captured().text == "an event"
    arena.assert_clean()
