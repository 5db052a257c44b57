"""Hosts that can't confine, or only in part: nothing starts there unless somebody said so (C-30, C-32)."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from attack import Scene, blocks_change

BARE: list[tuple[str, dict[str, Any]]] = [
    ("no Landlock", {"landlock": 0}),
    ("Landlock without truncate", {"landlock": 2}),
    ("no seccomp", {"seccomp": False}),
    ("Windows", {"platform": "win32"}),
    ("another machine", {"machine": "riscv64"}),
]


@pytest.mark.parametrize("host", BARE, ids=lambda host: host[0])
@pytest.mark.parametrize("named", [True, False], ids=["named", "chosen"])
@pytest.mark.level(1)
def test_refuses_on_a_host_that_cannot_confine(
    scene: Scene, host: tuple[str, dict[str, Any]], *, named: bool
) -> None:
    """A run that must be confined and can't be is refused with a reason, and nothing is started (C-30)."""
    scene.script("open(args[0], 'w')", front='fs_write: ["."]')
    mark = scene.workspace / "ran"
    probe = {"level2": False, **host[1]}
    told = scene.confined(mark, probe=probe, backend="linux-1" if named else None).told
    assert told["termination"] == "refused"
    assert told["exit_code"] is None
    assert told["backend"] is None
    assert told["guarantees"] is None
    assert told["error"]["message"]
    assert told["error"]["help"]
    assert not mark.exists()
    scene.plainly(mark)
    assert mark.exists()


@pytest.mark.level(1)
def test_refuses_the_backend_of_another_system(scene: Scene) -> None:
    """A Mac has a backend of its own, and the one of Linux is refused there when somebody names it (C-30)."""
    scene.script("open(args[0], 'w')", front='fs_write: ["."]')
    mark = scene.workspace / "ran"
    told = scene.confined(mark, probe={"level2": False, "platform": "darwin"}, backend="linux-1").told
    assert (told["termination"], told["backend"]) == ("refused", None)
    assert told["error"]["message"]
    assert not mark.exists()


@pytest.mark.parametrize("host", BARE[:3], ids=lambda host: host[0])
@pytest.mark.level(1)
def test_runs_unconfined_only_when_somebody_says_so(scene: Scene, host: tuple[str, dict[str, Any]]) -> None:
    """An explicit word lets it run, and the Result says that nothing was enforced (C-30)."""
    scene.script("print('ran')", front="timeout: 5")
    probe = {"level2": False, **host[1]}
    told = scene.confined(probe=probe, backend=None, allow_unconfined=True).told
    assert "ran" in told["out"]
    assert told["backend"] == "passthrough"
    assert told["guarantees"]["fs-read"] == "open"
    assert any(one["rule"] == "unconfined" for one in told["warnings"])


@pytest.mark.level(1)
def test_a_floor_forbids_running_unconfined(scene: Scene) -> None:
    """What a machine file requires, no switch of a call takes away (C-30)."""
    machine = scene.file(scene.home / "machine.yaml", "floor: {require: confined}\n")
    scene.script("open('ran', 'w')", front='fs_write: ["."]')
    told = scene.confined(
        probe={"landlock": 0, "level2": False}, backend=None, allow_unconfined=True, machine_file=str(machine)
    ).told
    assert told["termination"] == "refused"
    assert not (scene.workspace / "ran").exists()


def test_an_unknown_backend_is_no_backend(scene: Scene) -> None:
    """A backend that does not exist, or that does not confine, starts nothing."""
    for name in ("bwrap", "passthrough", "seatbelt", ""):
        scene.script("open('ran', 'w')", front='fs_write: ["."]')
        told = scene.confined(backend=name).told
        assert told.get("raised") or told["termination"] == "refused" or told["backend"] == "linux", told
    if (scene.workspace / "ran").exists():
        assert scene.confined(backend="").told["guarantees"]["fs-read"] == "enforced"


@pytest.mark.level(1)
@pytest.mark.parametrize("abi", [3, 4, 5])
def test_an_older_kernel_blocks_as_much_as_it_says(scene: Scene, abi: int) -> None:
    """With the rights of an older ABI only: files and network hold, and what is less is said (C-32)."""
    target = scene.file(scene.outside / "file.txt")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.setblocking(False)
        body = """
for act in (lambda: open(args[0], 'w'), lambda: os.truncate(args[0], 0), lambda: os.unlink(args[0]),
            lambda: os.rename(args[0], 'mine'), lambda: socket.create_connection(('127.0.0.1', int(args[1])))):
    try: act()
    except OSError as failure: print(failure)
"""
        run = blocks_change(
            scene, body, target, target, listener.getsockname()[1], probe={"landlock": abi, "level2": False}
        )
        connected = []
        try:
            while True:
                connected.append(listener.accept()[0])
        except BlockingIOError:
            pass
        for one in connected:
            one.close()
    assert len(connected) == 1, "one connection is the control's"
    said = run.told["guarantees"]
    assert said["fs-read"] == said["fs-write"] == said["network"] == "enforced"
    assert said["ipc"] == "partial"


@pytest.mark.level(1)
def test_a_full_requirement_is_not_met_by_a_partial_host(scene: Scene) -> None:
    """`require: full` on a host where a guarantee is partial starts nothing, and names the guarantee (law 7)."""
    scene.script("open('ran', 'w')", front='fs_write: ["."]')
    told = scene.confined(require="full", probe={"landlock": 5, "level2": False}).told
    assert told["termination"] == "refused"
    assert "ipc" in told["error"]["message"]
    assert not (scene.workspace / "ran").exists()


@pytest.mark.level(1)
def test_a_host_that_promises_too_much_starts_nothing(scene: Scene) -> None:
    """A plan that the kernel does not take whole is a failed start, never a weaker run (law 7)."""
    scene.script("open('ran', 'w')", front='fs_write: ["."]')
    told = scene.confined(
        probe={"machine": "aarch64" if __import__("os").uname().machine == "x86_64" else "x86_64"}
    ).told
    # A filter for another machine kills whatever it is given to, before anything of the script runs.
    assert told["termination"] in {"failed_to_start", "signaled", "refused", "cancelled"}
    assert not (scene.workspace / "ran").exists()


def test_says_which_level_enforced_what(scene: Scene) -> None:
    """Every Result names backend, level and guarantees (law 7)."""
    scene.script("print('ran')", front="timeout: 5")
    told = scene.confined().told
    assert (told["backend"], told["level"]) == ("linux", scene.level)
    assert set(told["guarantees"].values()) <= {"enforced", "partial", "open"}
    assert all(
        told["guarantees"][name] == "enforced" for name in ("fs-read", "fs-write", "network", "environment")
    )
    assert told["guarantees"]["names"] == ("open" if scene.level == 1 else "enforced")
