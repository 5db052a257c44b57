"""Attacks on the kernel's own limits: namespaces, mounts, other names for system calls, other ways to make them."""

from __future__ import annotations

import os

import pytest
from attack import Scene, blocks_change, blocks_reading

X86 = pytest.mark.skipif(
    os.uname().machine != "x86_64", reason="x86_64 has these other names for system calls"
)


SPACES = {
    "user": 0x10000000,
    "mount": 0x00020000,
    "network": 0x40000000,
    "pid": 0x20000000,
    "ipc": 0x08000000,
    "uts": 0x04000000,
    "cgroup": 0x02000000,
}


@pytest.mark.parametrize("how", ["unshare", "clone", "clone3"])
def test_blocks_new_namespaces(scene: Scene, how: str) -> None:
    """No namespace is made, by any of the three calls, alone or (for an ordinary user) with a user namespace."""
    extra = 0 if scene.party.uid == 0 else SPACES["user"]
    body = f"""
def made(name, flags):
    if {how!r} == 'unshare':
        call('unshare', flags); os.write(1, b'entered %s\\n' % name.encode()); return
    child = call('clone', flags | 17, 0, 0, 0, 0) if {how!r} == 'clone' else call('clone3', struct.pack('8Q', flags, 0, 0, 0, 17, 0, 0, 0), 64)
    if child == 0:
        os.write(1, b'entered %s\\n' % name.encode()); os._exit(0)
    os.waitpid(child, 0)
for name, flags in {SPACES!r}.items():
    sys.stdout.flush()
    if os.fork() == 0:
        try: made(name, flags | {extra})
        except OSError as failure: print(name, failure, flush=True)
        os._exit(0)
    os.wait()
"""
    scene.script(body)
    control = scene.plainly()
    entered = {line.split()[1] for line in control.out.splitlines() if line.startswith("entered")}
    if not entered:
        pytest.skip(f"this host gives this user no namespace: {control.out.splitlines()[-1:]}")
    assert "user" in entered
    run = scene.confined()
    assert run.attempted
    assert "entered" not in run.out
    assert all(name in run.out for name in SPACES), "an attempt did not come to its call"


def test_blocks_entering_namespaces_of_others(scene: Scene) -> None:
    """Setns does not enter the namespaces of a process outside."""
    body = "call('setns', os.pidfd_open(int(args[0])), 0x04000000); print('entered')"
    with scene.victim() as victim:
        scene.script(body)
        run = scene.confined(victim.pid)
        assert run.attempted
        assert "entered" not in run.out
        if scene.party.uid == 0:
            assert "entered" in scene.plainly(victim.pid).out


@pytest.mark.parametrize("how", ["mount", "fsopen", "open_tree"])
def test_blocks_mounting(scene: Scene, how: str) -> None:
    """Nothing is mounted, by the old calls or the new ones. The control does it in a namespace of its own."""
    body = {
        "mount": "os.makedirs('here', exist_ok=True); call('mount', b'none', b'here', b'tmpfs', 0, 0)",
        "fsopen": "call('fsopen', b'tmpfs', 0)",
        "open_tree": "call('open_tree', -100, b'/usr', 0x80001)",
    }[how]
    scene.script(f"{body}\nprint('mounted')")
    control = scene.plainly(under=["unshare", "-Urm"])
    if "mounted" not in control.out:
        pytest.skip(f"this host lets this user mount nowhere: {control.err.splitlines()[-1:]}")
    run = scene.confined()
    assert run.attempted
    assert "mounted" not in run.out


def test_blocks_changing_the_root(scene: Scene) -> None:
    """Chroot is refused, also to root."""
    scene.script("os.chroot('.'); print('moved')")
    run = scene.confined()
    assert run.attempted
    assert "moved" not in run.out
    under = [] if scene.party.uid == 0 else ["unshare", "-Ur"]
    control = scene.plainly(under=under)
    if under and "moved" not in control.out:
        pytest.skip(f"this user may not chroot anywhere here: {control.err.splitlines()[-1:]}")
    assert "moved" in control.out


def test_blocks_capabilities(scene: Scene) -> None:
    """Root has none of its capabilities left, and no program it starts gets them back."""
    if scene.party.uid != 0:
        pytest.skip("an ordinary user has no capabilities to lose")
    target = scene.file(scene.workspace / "file.txt", "x", 0o000)
    os.chown(target, 54321, 54321)
    body = """
subprocess.run(['/bin/cat', args[0]])
subprocess.run(['/bin/sh', '-c', 'cat ' + args[0]])
print(open(args[0]).read() == 'x' and 'read it')
"""
    blocks_reading(scene, body, "read it", target)


def test_blocks_capabilities_from_ever_coming_back(scene: Scene) -> None:
    """The bounding set is empty and no_new_privs is set, in the script and in what it starts."""
    body = """
left = [n for n in range(64) if libc.prctl(23, n, 0, 0, 0) == 1]
print('left', left if os.getuid() == 0 or args else [], 'new', libc.prctl(39, 0, 0, 0, 0))
"""
    scene.script(body)
    # At level 2 everybody had capabilities in the namespace; at level 1 only root had any to bound.
    run = scene.confined(*["all"] * (scene.level == 2))
    assert "left [] new 1\n" in run.out, run
    assert "left [] new 1" not in scene.plainly("all").out


def test_blocks_administration(scene: Scene) -> None:
    """Host name, clock and kernel log are nobody's business."""
    body = """
import socket as s
for act in (lambda: s.sethostname(s.gethostname()), lambda: time.clock_settime(0, time.time()),
            lambda: libc.klogctl(10, None, 0) > 0 and print('acted')):
    try: act(); print('acted' if act.__code__.co_names[0] != 'libc' else '')
    except OSError as failure: print(failure)
"""
    if scene.party.uid != 0:
        pytest.skip("an ordinary user may do none of this anyway")
    blocks_reading(scene, body, "acted")


@pytest.mark.parametrize("what", ["bpf", "perf_event_open", "userfaultfd"])
def test_blocks_large_kernel_surfaces(scene: Scene, what: str) -> None:
    """bpf, perf and userfaultfd can't be used."""
    body = {
        "bpf": "call('bpf', 0, struct.pack('5I', 2, 4, 8, 1, 0) + bytes(100), 120)",
        "perf_event_open": "call('perf_event_open', struct.pack('IIQ', 1, 112, 0) + bytes(24) + struct.pack('Q', 0x60) + bytes(100), 0, -1, -1, 0)",
        "userfaultfd": "call('userfaultfd', 1)",
    }[what]
    scene.script(f"{body}; print('usable')")
    control = scene.plainly()
    if "usable" not in control.out:
        pytest.skip(f"this host gives it to nobody like this user: {control.err.splitlines()[-1:]}")
    run = scene.confined()
    assert run.attempted
    assert "usable" not in run.out


def test_blocks_opening_through_io_uring(scene: Scene) -> None:
    """A ring can't be set up: it opens files behind the filter's back."""
    body = "print('ring', call('io_uring_setup', 4, ctypes.create_string_buffer(120)))"
    scene.script(body)
    control = scene.plainly()
    if "ring" not in control.out:
        pytest.skip(f"nobody can set up a ring here: {control.err.splitlines()[-1:]}")
    run = scene.confined()
    assert run.attempted
    assert "ring" not in run.out


@X86
def test_blocks_system_calls_of_32_bits(scene: Scene) -> None:
    """Int 0x80 has other numbers: chmod by it changes nothing and ends the script (SIGSYS)."""
    body = """
libc.mmap.restype = ctypes.c_void_p
page = libc.mmap(None, ctypes.c_size_t(4096), 7, 0x62, -1, 0)  # MAP_PRIVATE, MAP_ANONYMOUS, MAP_32BIT
code = b'\\x53\\xb8\\x0f\\0\\0\\0\\xbb' + struct.pack('I', page + 512) + b'\\xb9' + struct.pack('I', 0o777) + b'\\xcd\\x80\\x5b\\xc3'
ctypes.memmove(page, code, len(code))
ctypes.memmove(page + 512, args[0].encode() + b'\\0', len(args[0]) + 1)
print('RESULT', ctypes.CFUNCTYPE(ctypes.c_int)(page)(), flush=True)
"""
    target = scene.file(scene.workspace / "file.txt")
    scene.script(body)
    control = scene.plainly(target)
    if "RESULT 0" not in control.out:
        pytest.skip(f"this kernel takes no 32-bit system calls: {control}")
    target.chmod(0o600)
    run = blocks_change(scene, body, target)
    assert run.told["termination"] == "signaled"
    assert run.told["signal"] == 31


@X86
def test_blocks_system_calls_of_x32(scene: Scene) -> None:
    """x32 is a second set of numbers: chmod by it changes nothing."""
    target = scene.file(scene.workspace / "file.txt")
    body = "print('RESULT', libc.syscall(ctypes.c_long(0x40000000 + 90), args[0].encode(), 0o777))"
    scene.script(body)
    run = scene.confined(target)
    assert run.attempted
    assert "RESULT 0" not in run.out
    assert target.stat().st_mode & 0o777 == 0o600
    control = scene.plainly(target)
    if "RESULT 0" not in control.out:
        pytest.skip("this kernel has no x32, so the control can't succeed")


def test_blocks_loosening_the_filter(scene: Scene) -> None:
    """A second filter and a nested Landlock domain only narrow; no_new_privs can't be taken back."""
    target = scene.file(scene.outside / "file.txt")
    body = """
allow = struct.pack('HBBI', 6, 0, 0, 0x7fff0000)
room = ctypes.create_string_buffer(allow)
libc.prctl(22, 2, struct.pack('HxxxxxxQ', 1, ctypes.addressof(room)))
libc.prctl(38, 0, 0, 0, 0)
libc.prctl(22, 0, 0)
os.chmod(args[0], 0o777); open(args[0], 'a').write('changed')
"""
    blocks_change(scene, body, target)
