"""Faults that other teams shipped, as far as they are about running on Linux (shared/cases.md)."""

from __future__ import annotations

import contextlib
import socket
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attack import Scene

OPEN_CEILING = 'sandbox:\n  fs_read: ["${workspace}"]\n  fs_write: ["${workspace}"]\n  network: true\n'


@contextlib.contextmanager
def listener() -> Iterator[int]:
    """Listen on a port of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        yield server.getsockname()[1]
        with pytest.raises(TimeoutError):
            server.accept()


def test_b15_the_working_folder_does_not_depend_on_the_callers(scene: Scene) -> None:
    """B-15: the script starts in the workspace and finds its own data, wherever the caller stands."""
    scene.file(scene.skills / scene.key / "data/a.txt", "from the skill\n")
    scene.script("print(os.getcwd()); print(open(os.environ['SKILL_DIR'] + '/data/a.txt').read())", front="")

    answers = {
        scene.confined(**{"from": str(folder)}).out for folder in ("/", scene.outside, scene.workspace)
    }

    assert answers == {f"ATTEMPT\n{scene.workspace}\nfrom the skill\n\n"}


@pytest.mark.level(2)
def test_c20_its_own_loopback_is_not_the_machines(scene: Scene) -> None:
    """C-20: with no network a script can talk to itself over loopback, and to nobody else's port."""
    scene.script(
        "s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname()); print('SELF')\n"
        "socket.create_connection(('127.0.0.1', int(args[0])), 1); print('OTHER')"
    )

    with listener() as port:
        run = scene.confined(port)

    assert "SELF" in run.out, run.err
    assert "OTHER" not in run.out


def test_c20_a_host_list_is_refused_and_never_taken_for_everything(scene: Scene) -> None:
    """C-20, C-21: `network: [localhost:8000]` is parsed, and the run is refused as nothing enforces it yet."""
    ceiling = scene.file(scene.base / "ceiling.yaml", OPEN_CEILING)
    scene.ceiling = ceiling
    scene.script("print('RAN')", front='network: ["localhost:8000"]')

    run = scene.confined()

    assert run.told["termination"] == "refused", run.told
    assert run.told["error"]["rule"] == "network-hosts"
    assert "RAN" not in run.out


@pytest.mark.parametrize("granted", [True, False])
def test_c22_names_resolve_where_a_network_was_granted(scene: Scene, granted: bool) -> None:  # noqa: FBT001 - a case
    """C-22: with a network the resolver's real files are readable, without one they are not there."""
    scene.ceiling = scene.file(scene.base / "ceiling.yaml", OPEN_CEILING)
    scene.script(
        "print(socket.gethostbyname('localhost')); print(len(open('/etc/resolv.conf').read()))",
        front=f"network: {str(granted).lower()}",
    )

    run = scene.confined()

    assert (run.code == 0) is granted, (run.out, run.err)
    if granted:
        assert "127.0.0.1" in run.out


def test_c28_a_worktree_does_not_open_its_repository(scene: Scene) -> None:
    """C-28: a workspace that is a git worktree grants nothing of the repository it belongs to."""
    main = scene.folder(scene.outside / "main")
    env = scene.shape() | {"HOME": str(scene.home)}
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@example.org"]
    settings = {"env": env, "capture_output": True, **scene.party.identity()}
    subprocess.run([*git, "init", "-q", "."], cwd=main, check=True, **settings)  # type: ignore[call-overload]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], cwd=main, check=True, **settings)  # type: ignore[call-overload]
    scene.workspace.rmdir()
    subprocess.run([*git, "worktree", "add", "-q", str(scene.workspace)], cwd=main, check=True, **settings)  # type: ignore[call-overload]
    before = (scene.workspace / ".git").read_text()
    scene.script(
        "subprocess.run(['git', 'add', '-A']); "
        "sys.exit(subprocess.run(['git', '-c', 'user.name=n', '-c', 'user.email=e', 'commit', '-qm', 'y']).returncode)"
    )

    run = scene.confined()

    assert run.attempted
    assert run.code != 0
    assert (scene.workspace / ".git").read_text() == before


def test_c35_a_denied_folder_takes_no_writes(scene: Scene) -> None:
    """C-35: writing into a denied folder fails; it does not seem to work and vanish."""
    scene.file(scene.workspace / ".ssh/id", "key\n")
    scene.script("open('.ssh/t', 'w').write('x'); print('WROTE')")

    run = scene.confined()

    assert run.attempted
    assert run.code != 0
    assert "WROTE" not in run.out
    assert not (scene.workspace / ".ssh/t").exists()
