"""Limits: memory and processes of the whole tree, and the size of files, at every level and unconfined."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from attack import Scene

LIMITS = "metadata: {skillrun: {limits: {memory: 128MiB, processes: 20, file_size: 1MiB}}}"
WRITES = 'fs_read: ["."]\nfs_write: ["."]\n' + LIMITS
EATERS = {
    "its own memory": "x = []\nwhile True: x.append(bytearray(8 << 20))",
    "children together": (
        "for _ in range(6):\n    if os.fork() == 0:\n        x = bytearray(40 << 20); time.sleep(30)\ntime.sleep(30)"
    ),
    "a thread that outlives the main one": (
        "import threading\nx = []\ndef eat():\n    for _ in range(40): time.sleep(0.01); x.append(bytearray(8 << 20))\n"
        "    time.sleep(30)\nthreading.Thread(target=eat).start()\nlibc.syscall({'x86_64': 60}.get(os.uname().machine, 93), 0)"
    ),
}


@pytest.mark.parametrize("what", EATERS)
def test_a_tree_that_takes_too_much_memory_is_ended(scene: Scene, what: str) -> None:
    """The run ends with `memory_limit` and the figure, long before its deadline."""
    front = WRITES.replace("file_size: 1MiB", "file_size: 1GiB")
    scene.script(EATERS[what], front=front)

    run = scene.confined()

    assert run.attempted
    assert run.told["termination"] == "memory_limit", run.told
    assert "128 MiB" in run.told["error"]["message"]


@pytest.mark.parametrize("call", ["memfd_create", "memfd_secret"])
def test_a_memory_file_can_not_be_made(scene: Scene, call: str) -> None:
    """Sent over a socket and closed it is in no process, and the watch would never see what it holds."""
    body = {
        "memfd_create": "file = os.memfd_create('m')\nos.write(file, bytes(1 << 20))\nprint('MADE')",
        "memfd_secret": "print('MADE' if libc.syscall(447, 0) >= 0 or ctypes.get_errno() != errno.ENOSYS else 'NONE')",
    }[call]
    scene.script(body, front=WRITES)

    run = scene.confined()

    assert run.attempted
    assert "MADE" not in run.out
    if call == "memfd_create" or "MADE" in scene.plainly().out:  # the other one is off on most systems
        assert "MADE" in scene.plainly().out


def test_what_many_processes_share_is_counted_once(scene: Scene) -> None:
    """Children that only look at their parent's memory do not add it up."""
    scene.script(
        "x = bytearray(60 << 20)\nfor _ in range(8):\n    if os.fork() == 0: time.sleep(1); os._exit(0)\n"
        "for _ in range(8): os.wait()\nprint('done')",
        front=WRITES,
    )

    run = scene.confined()

    assert "done" in run.out, run.told


def test_a_tree_of_too_many_processes_is_ended_or_can_not_grow(scene: Scene) -> None:
    """A bomb does not get past its limit: the kernel refuses forks, or the watch ends the run."""
    scene.script(
        "made = 0\ntry:\n    for _ in range(200):\n        if os.fork() == 0: time.sleep(20); os._exit(0)\n        made += 1\n"
        "except OSError: print('REFUSED', made, flush=True); sys.exit(3)\ntime.sleep(20)",
        front=WRITES,
    )

    run = scene.confined()

    assert run.attempted
    refused = "REFUSED" in run.out and int(run.out.split("REFUSED")[1].split()[0]) <= 21
    assert refused or (run.told["error"] or {}).get("rule") == "process-limit", run.told


def test_a_file_does_not_grow_past_its_size(scene: Scene) -> None:
    """Writing beyond the limit fails, and the file keeps to it."""
    scene.script("open('big', 'wb').write(bytes(4 << 20))", front=WRITES)

    run = scene.confined()

    assert run.attempted
    assert run.code != 0
    assert (scene.workspace / "big").stat().st_size <= 1 << 20


def test_no_core_is_left(scene: Scene) -> None:
    """A crash leaves no dump of the script's memory, neither in a file nor with the system's handler."""
    scene.script(
        "import resource\nprint(resource.getrlimit(resource.RLIMIT_CORE), flush=True)\nos.abort()",
        front=WRITES,
    )

    run = scene.confined()

    assert "(1, 1)" in run.out
    assert run.told["signal"] == 6
    assert not list(scene.workspace.glob("core*"))
