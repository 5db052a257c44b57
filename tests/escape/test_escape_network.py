"""Attacks that reach other programs through sockets, with no network granted and with the internet granted."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
from typing import TYPE_CHECKING, TypeAlias

import pytest
from attack import FRONT, Scene, blocks_reading

if TYPE_CHECKING:
    from collections.abc import Iterator

Address: TypeAlias = "tuple[str, int] | str"
HOST = 'sandbox:\n  fs_read: []\n  fs_write: ["${workspace}"]\n  network: true\n'


class Listener:
    """A socket outside that notes whether anything reached it."""

    def __init__(self, family: int, kind: int, address: Address) -> None:
        self.socket = socket.socket(family, kind)
        self.socket.bind(address)
        if kind != socket.SOCK_DGRAM:
            self.socket.listen()
        self.socket.setblocking(False)
        self.kind = kind

    def reached(self) -> bool:
        """Whether a connection or a datagram is there."""
        with contextlib.suppress(BlockingIOError):
            if self.kind == socket.SOCK_DGRAM:
                self.socket.recv(100)
            else:
                self.socket.accept()[0].close()
            return True
        return False


@contextlib.contextmanager
def listening(family: int, kind: int, address: Address) -> Iterator[Listener]:
    """Listen for the time of a test."""
    listener = Listener(family, kind, address)
    try:
        yield listener
    finally:
        listener.socket.close()


def blocks_reaching(
    scene: Scene, body: str, listener: Listener, *arguments: object, front: str = FRONT
) -> None:
    """Run an attack that wants to reach a listener: the control does, the confined run does not."""
    scene.script(body, front=front)
    run = scene.confined(*arguments)
    assert run.attempted, run
    assert not listener.reached(), "something of the confined script arrived"
    control = scene.plainly(*arguments)
    assert listener.reached(), f"the control did not succeed: {control}"


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_blocks_calling_home(scene: Scene, family: socket.AddressFamily, kind: socket.SocketKind) -> None:
    """No TCP connection and no UDP datagram leaves, by IPv4 or IPv6."""
    here = "127.0.0.1" if family == socket.AF_INET else "::1"
    body = f"""
caller = socket.socket({int(family)}, {int(kind)})
caller.connect(({here!r}, int(args[0]))); caller.send(b'hello')
"""
    try:
        listener = listening(family, kind, (here, 0))
        with listener as one:
            blocks_reaching(scene, body, one, one.socket.getsockname()[1])
    except OSError as failure:
        pytest.skip(f"this machine has no such address: {failure}")


def test_blocks_a_connection_that_sending_makes(scene: Scene) -> None:
    """MSG_FASTOPEN connects without connect(), which Landlock does not see."""
    body = """
caller = socket.socket()
caller.sendto(b'hello', 0x20000000, ('127.0.0.1', int(args[0])))
"""
    with listening(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)) as one:
        blocks_reaching(scene, body, one, one.socket.getsockname()[1])


def test_blocks_a_connection_through_io_uring(scene: Scene) -> None:
    """A ring makes sockets and connects them without the system calls that a filter sees."""
    body = """
params = ctypes.create_string_buffer(120)
ring = call('io_uring_setup', 4, params)
sq = struct.unpack_from('8I', params, 40); cq = struct.unpack_from('8I', params, 80)
queue = mmap.mmap(ring, 4096, offset=0); done = mmap.mmap(ring, 4096, offset=0x8000000)
entries = mmap.mmap(ring, 4096, offset=0x10000000)
def ask(code, fd, off, address, length):
    tail = struct.unpack_from('I', queue, sq[1])[0]
    entries[0:64] = struct.pack('BBHiQQIIQQQQ', code, 0, 0, fd, off, address, length, 0, 1, 0, 0, 0)
    struct.pack_into('I', queue, sq[6] + 4 * (tail & 3), 0)
    struct.pack_into('I', queue, sq[1], tail + 1)
    call('io_uring_enter', ring, 1, 1, 1, 0, 0)
    head = struct.unpack_from('I', done, cq[0])[0]
    result = struct.unpack_from('Qi', done, cq[5] + 16 * (head & struct.unpack_from('I', done, cq[2])[0]))[1]
    struct.pack_into('I', done, cq[0], head + 1)
    return result
where = ctypes.create_string_buffer(struct.pack('H', 2) + int(args[0]).to_bytes(2, 'big') + bytes([127, 0, 0, 1]) + bytes(8))
caller = ask(45, 2, 1, 0, 0)
print('ring', caller, ask(16, caller, 16, ctypes.addressof(where), 0))
"""
    with listening(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)) as one:
        scene.script(body)
        control = scene.plainly(one.socket.getsockname()[1])
        if not one.reached():
            pytest.skip(f"io_uring makes no connection on this kernel: {control}")
        blocks_reaching(scene, body, one, one.socket.getsockname()[1])


@pytest.mark.level(1)
def test_blocks_listening(scene: Scene) -> None:
    """Nothing listens: a bound port would be reachable from other machines."""
    blocks_reading(
        scene, "s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); print('listens')", "listens"
    )


@pytest.mark.parametrize("place", ["outside", "work"])
@pytest.mark.parametrize("network", [False, True])
def test_blocks_a_socket_of_another_program(scene: Scene, place: str, *, network: bool) -> None:
    """A socket by path, such as the container engine's, is not reachable, also where network was granted (C-19)."""
    if network:
        scene.ceiling = scene.file(scene.home / "c.yaml", HOST)
    path = scene.base / place / "s.sock"
    body = "caller = socket.socket(socket.AF_UNIX); caller.connect(args[0]); caller.send(b'hello')"
    front = 'fs_write: ["."]\nnetwork: true' if network else 'fs_write: ["."]'
    with short(path) as name, listening(socket.AF_UNIX, socket.SOCK_STREAM, name) as one:
        scene.own(path)
        blocks_reaching(scene, body, one, name, front=front)


@contextlib.contextmanager
def short(path: os.PathLike[str]) -> Iterator[str]:
    """Give a socket's path as it is; a path over 107 bytes is no address."""
    assert len(os.fspath(path)) < 108
    yield os.fspath(path)


@pytest.mark.parametrize("network", [False, True])
def test_blocks_an_abstract_socket(scene: Scene, *, network: bool) -> None:
    """A socket with an abstract name is not reachable either (C-19)."""
    if network:
        scene.ceiling = scene.file(scene.home / "c.yaml", HOST)
    name = f"skillrun-{secrets.token_hex(6)}"
    body = "caller = socket.socket(socket.AF_UNIX); caller.connect('\\0' + args[0])"
    front = 'fs_write: ["."]\nnetwork: true' if network else 'fs_write: ["."]'
    with listening(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + name) as one:
        blocks_reaching(scene, body, one, name, front=front)


def test_blocks_datagrams_to_a_socket_path(scene: Scene) -> None:
    """No datagram reaches a socket by path."""
    path = scene.outside / "d.sock"
    body = "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'hello', args[0])"
    with listening(socket.AF_UNIX, socket.SOCK_DGRAM, str(path)) as one:
        scene.own(path)
        blocks_reaching(scene, body, one, path)


@pytest.mark.parametrize("kind", ["SOCK_DGRAM", "SOCK_RAW"])
def test_blocks_datagrams_from_one_end_of_a_pair(scene: Scene, kind: str) -> None:
    """sendto() on an end of a datagram pair reaches any path; such pairs can't be made."""
    path = scene.outside / "d.sock"
    body = (
        f"socket.socketpair(socket.AF_UNIX, socket.{kind} | socket.SOCK_CLOEXEC)[0].sendto(b'hello', args[0])"
    )
    with listening(socket.AF_UNIX, socket.SOCK_DGRAM, str(path)) as one:
        scene.own(path)
        blocks_reaching(scene, body, one, path)


def test_blocks_connecting_an_end_of_a_stream_pair(scene: Scene) -> None:
    """The pairs that can be made stay tied to each other: neither end reaches anybody else."""
    stream = scene.outside / "s.sock"
    body = """
ends = [end for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET) for end in socket.socketpair(socket.AF_UNIX, kind)]
for end in ends:
    for act in (lambda: end.connect(args[0]), lambda: end.sendto(b'x', args[0]), lambda: end.listen(),
                lambda: libc.connect(end.fileno(), bytes(16), 2), lambda: end.connect(args[0])):
        try: act()
        except OSError as failure: print(failure)
"""
    scene.script(body)
    with listening(socket.AF_UNIX, socket.SOCK_STREAM, str(stream)) as one:
        scene.own(stream)
        run = scene.confined(stream)
        assert run.attempted
        assert not one.reached()
        # The control of this one is the sibling above: a datagram pair reaches a path. Here the pairs really were made.
        assert "Transport endpoint is already connected" in run.out or "Invalid argument" in run.out


@pytest.mark.level(1)
def test_blocks_taking_an_abstract_name_with_an_end_of_a_pair(scene: Scene) -> None:
    """bind() on an end of a pair would take a name in the list that all programs of this machine share."""
    name = f"skillrun-{secrets.token_hex(6)}"
    body = (
        "one, other = socket.socketpair(); one.bind('\\0' + args[0]); print('name taken', one.getsockname())"
    )
    blocks_reading(scene, body, "name taken", name)


@pytest.mark.parametrize(
    ("family", "kind"),
    [
        ("AF_NETLINK", "SOCK_RAW"),
        ("AF_PACKET", "SOCK_RAW"),
        ("AF_VSOCK", "SOCK_STREAM"),
        ("AF_INET", "SOCK_RAW"),
    ],
)
@pytest.mark.parametrize("network", [False, True])
def test_blocks_other_kinds_of_sockets(scene: Scene, family: str, kind: str, *, network: bool) -> None:
    """Netlink, packet, virtual machine and raw sockets can't be made, also where network was granted."""
    if family == "AF_NETLINK" and scene.level == 2:
        pytest.skip("at level 2 netlink asks the run's own network, or the one that was granted")
    if network:
        scene.ceiling = scene.file(scene.home / "c.yaml", HOST)
    front = 'fs_write: ["."]\nnetwork: true' if network else 'fs_write: ["."]'
    body = (
        f"socket.socket(socket.{family}, socket.{kind}, 1 if '{family}' == 'AF_INET' else 0); print('made')"
    )
    scene.script(body, front=front)
    control = scene.plainly()
    if "made" not in control.out:
        pytest.skip(f"nobody like this user can make one here: {control.err.splitlines()[-1]}")
    run = scene.confined()
    assert run.attempted
    assert "made" not in run.out


@pytest.mark.level(1)
def test_blocks_every_family_of_sockets(scene: Scene) -> None:
    """Whatever family and type a kernel knows: with no network granted, none is made."""
    body = """
made = set()
for family in range(1, 50):
    for kind in (1, 2, 3, 5):
        try: made.add((family, socket.socket(family, kind).family))
        except OSError: pass
        try: socket.socketpair(family, kind) and family != 1 and made.add((family, 'pair'))
        except OSError: pass
print('made', len(made))
"""
    scene.script(body)
    run = scene.confined()
    assert "made 0\n" in run.out, run
    assert "made 0\n" not in scene.plainly().out


def test_grants_the_internet_and_nothing_else(scene: Scene) -> None:
    """`network: true` really opens TCP and UDP, so that the blocked families above are the filter's doing."""
    scene.ceiling = scene.file(scene.home / "c.yaml", HOST)
    body = """
caller = socket.socket(); caller.connect(('127.0.0.1', int(args[0]))); caller.send(b'hello')
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'hello', ('127.0.0.1', int(args[1])))
"""
    scene.script(body, front="network: true")
    with (
        listening(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)) as tcp,
        listening(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)) as udp,
    ):
        run = scene.confined(tcp.socket.getsockname()[1], udp.socket.getsockname()[1])
        assert run.code == 0, run
        assert tcp.reached()
        assert udp.reached()
        assert run.told["guarantees"]["network"] == "open"
