"""Escapes that any Unix knows, and those that only a Mac has, each with an unconfined control that succeeds.

On a Mac they attack the Seatbelt backend; elsewhere the portable ones attack this platform's own, so that the
attacks themselves are known to work. SKILLRUN_REQUIRE_BACKENDS=seatbelt makes a skip on a Mac a failure.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from skillrun.host import Host
from skillrun.launch.result import Result, Termination
from skillrun.runner import Runner

if TYPE_CHECKING:
    from collections.abc import Iterator

MAC = sys.platform == "darwin"
REQUIRED = "seatbelt" in os.environ.get("SKILLRUN_REQUIRE_BACKENDS", "").split(",")
if not MAC:
    pytestmark = (
        pytest.mark.slow
    )  # tests/escape attacks Linux thoroughly; here the attacks themselves are tried
only_on_a_mac = pytest.mark.skipif(not MAC, reason="what is attacked is part of macOS")


@dataclass
class Ground:
    """A workspace, a home and a folder outside, with a secret in each that is not the workspace's."""

    base: Path
    python: str
    token: str
    network: bool = False

    @property
    def work(self) -> Path:
        """The workspace."""
        return self.base / "work"

    @property
    def outside(self) -> Path:
        """A folder that nothing grants."""
        return self.base / "outside"

    def write(self, body: str, front: str = 'fs_read: ["."]\nfs_write: ["."]') -> None:
        """Write the skill that attacks. A file that is as it should be stays as it is."""
        skill = self.base / "skills/attack"
        (skill / "scripts").mkdir(parents=True, exist_ok=True)
        text = f"---\nname: attack\ndescription: d\n{front}\n---\n"
        file = skill / "SKILL.md"
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
        script = skill / "scripts/attack.py"
        script.write_text(
            f"#!{self.python}\nimport os, socket, subprocess, sys\nargs = sys.argv[1:]\nprint('ATTEMPT', flush=True)\n{body}\n"
        )
        script.chmod(0o755)

    def attack(self, body: str, *arguments: object, front: str = 'fs_read: ["."]\nfs_write: ["."]') -> Result:
        """Run an attack confined. It prints ATTEMPT first, so that one that never ran proves nothing."""
        self.write(body, front)
        (self.base / "ceiling.yaml").write_text(
            "sandbox: {fs_read: ['${workspace}'], fs_write: ['${workspace}'], deny: [denied], timeout: 30, network: "
            f"{str(self.network).lower()}}}\n"
        )
        host = Host(home=self.base / "home", environ={"PATH": "/usr/bin:/bin"}, temporary=self.base / "tmp")
        with Runner(
            workspace=self.work,
            skills=[self.base / "skills"],
            ceiling=self.base / "ceiling.yaml",
            host=host,
            require="confined",
        ) as runner:
            result = runner.run("attack", None, [str(one) for one in arguments])
        if result.termination is Termination.REFUSED:
            _missing(result.error.message if result.error else "refused")
        assert "ATTEMPT" in result.stdout.text, (result.error, result.stderr.text)
        return result

    def control(self, *arguments: object) -> str:
        """Run the same attack with nothing around it."""
        script = self.base / "skills/attack/scripts/attack.py"
        done = subprocess.run(
            [str(script), *map(str, arguments)],
            cwd=self.work,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.stdout + done.stderr

    def blocks_reading(self, body: str, *arguments: object) -> None:
        """See that the control prints the token and the confined attack does not."""
        result = self.attack(body, *arguments)
        assert self.token not in result.stdout.text + result.stderr.text
        assert self.token in self.control(*arguments), "the control did not succeed"

    def blocks_making(self, body: str, path: Path, *arguments: object) -> None:
        """See that the control makes or changes a path and the confined attack does not."""
        before = _state(path)
        self.attack(body, *(arguments or (path,)))
        assert _state(path) == before, f"{path} was changed"
        self.control(*(arguments or (path,)))
        assert _state(path) != before, "the control did not succeed"


def _state(path: Path) -> object:
    if not os.path.lexists(path):
        return None
    found = path.lstat()
    content: object = sorted(entry.name for entry in path.iterdir()) if path.is_dir() else path.read_bytes()
    return content, found.st_mode, found.st_mtime_ns


def _missing(reason: str) -> None:
    if MAC and REQUIRED:
        pytest.fail(f"SKILLRUN_REQUIRE_BACKENDS names seatbelt, and {reason}")
    pytest.skip(reason)


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    """Give one."""
    base = tmp_path.resolve()
    for folder in ("work", "outside", "home/.ssh", "tmp", "work/.git/hooks", "work/denied"):
        (base / folder).mkdir(parents=True)
    token = secrets.token_hex(12)
    for file in ("outside/secret", "home/.ssh/id", "work/denied/key", "work/.env"):
        (base / file).write_text(f"secret {token}\n")
    python = next((p for p in ("/usr/bin/python3", sys.executable) if shutil.which(p)), sys.executable)
    made = Ground(base, sys.executable if MAC else python, token)
    yield made
    shutil.rmtree(base / "outside", ignore_errors=True)


READ = "print(open(args[0]).read())"


@pytest.mark.parametrize("place", ["outside/secret", "home/.ssh/id", "work/denied/key", "work/.env"])
def test_blocks_reading_what_was_not_granted(ground: Ground, place: str) -> None:
    """A file outside, a key in the home, what was denied inside the workspace, a secret by its name."""
    ground.blocks_reading(READ, ground.base / place)


@pytest.mark.skipif(not MAC, reason="this volume tells letters apart")
@pytest.mark.parametrize("place", ["work/DENIED/key", "work/.ENV", "work/Denied/KEY"])
def test_blocks_reading_by_other_letters(ground: Ground, place: str) -> None:
    """The same files in other letters, which most volumes of a Mac take."""
    ground.blocks_reading(READ, ground.base / place)


@pytest.mark.parametrize(
    "way",
    [
        "os.symlink(args[0], f'l{os.getpid()}'); print(open(f'l{os.getpid()}').read())",
        "os.link(args[0], f'h{os.getpid()}'); print(open(f'h{os.getpid()}').read())",
        "os.rename(args[0], 'm'); print(open('m').read())",
        "os.rename(os.path.dirname(args[0]), 'n'); print(open('n/' + os.path.basename(args[0])).read())",
        "print(subprocess.run(['cp', args[0], 'c']), open('c').read())",
        "print(subprocess.run(['/bin/cat', args[0]], capture_output=True).stdout)",
    ],
)
def test_blocks_reading_by_another_name(ground: Ground, way: str) -> None:
    """A link, a second name, a new name of the file or of its folder, a copy, another program."""
    ground.blocks_reading(
        f"try:\n    {way}\nexcept OSError as e: print(e)",
        ground.work / "denied/key" if "rename" in way else ground.outside / "secret",
    )


def test_blocks_listing_the_home(ground: Ground) -> None:
    """The names in a home folder are not told."""
    (ground.base / "home" / ground.token).write_text("")
    ground.blocks_reading(
        "try: print(os.listdir(args[0]))\nexcept OSError as e: print(e)", ground.base / "home"
    )


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ("open(args[0], 'w').write('x')", "outside/new"),
        ("os.mkdir(args[0])", "outside/folder"),
        ("os.chmod(args[0], 0o777)", "outside/secret"),
        ("os.utime(args[0], (1, 1))", "outside/secret"),
        ("os.unlink(args[0])", "outside/secret"),
        ("open(args[0], 'w').write('#!/bin/sh')", "work/.git/hooks/post-commit"),
        pytest.param("open(args[0], 'w').write('x')", "work/.envrc", marks=only_on_a_mac),
        pytest.param("os.mkdir(args[0])", "work/.vscode", marks=only_on_a_mac),
        ("os.rename(args[0], args[0] + '2')", "work/.git"),
        ("open(args[0], 'a').write('x')", "skills/attack/SKILL.md"),
        ("os.chmod(args[0], 0o4755)", "work/plain"),
    ],
)
def test_blocks_changing(ground: Ground, body: str, place: str) -> None:
    """Files outside, names that are obeyed later, the folder above them, the skill itself, set-id bits."""
    path = ground.base / place
    if place == "work/plain":
        path.write_text("")
    attack = f"try:\n    {body}\nexcept OSError as e: print(e)"
    ground.write(attack)
    ground.blocks_making(attack, path)


def test_blocks_the_network(ground: Ground) -> None:
    """No TCP connection, not even to this machine."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        _answer(server, ground.token)
        body = "try:\n    s = socket.create_connection(('127.0.0.1', int(args[0])), 5); print(s.recv(99))\nexcept OSError as e: print(e)"
        ground.blocks_reading(body, server.getsockname()[1])


@pytest.mark.parametrize("network", [False, True])
def test_blocks_unix_sockets(ground: Ground, network: bool) -> None:  # noqa: FBT001 - both cases
    """A socket such as docker's is out of reach, with a network granted too."""
    ground.network = network
    path = Path("/tmp") / f"skillrun-{secrets.token_hex(4)}.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        try:
            _answer(server, ground.token)
            body = "try:\n    s = socket.socket(socket.AF_UNIX); s.connect(args[0]); print(s.recv(99))\nexcept OSError as e: print(e)"
            result = ground.attack(body, path, front="network: true" if network else "fs_read: ['.']")
            assert ground.token not in result.stdout.text
            assert ground.token in ground.control(path), "the control did not succeed"
        finally:
            path.unlink()


def _answer(server: socket.socket, token: str) -> None:
    def serve() -> None:
        try:
            while True:
                other, _ = server.accept()
                with other:
                    other.sendall(token.encode())
        except OSError:
            return

    threading.Thread(target=serve, daemon=True).start()


def test_blocks_signals_to_others(ground: Ground) -> None:
    """A process outside can't be ended."""
    for confined in (True, False):
        victim = subprocess.Popen(["/bin/sleep", "60"])
        try:
            body = "try: os.kill(int(args[0]), 9)\nexcept OSError as e: print(e)"
            if confined:
                ground.attack(body, victim.pid)
                assert victim.poll() is None
            else:
                ground.control(victim.pid)
                assert victim.wait(10) == -9
        finally:
            victim.kill()
            victim.wait()


def test_blocks_arguments_of_others(ground: Ground) -> None:
    """What another process was started with is not told, by ps or by asking the kernel."""
    victim = subprocess.Popen(["/bin/sh", "-c", "sleep 60; : $0", ground.token])
    try:
        ground.blocks_reading(
            "print(subprocess.run(['ps', '-axww', '-o', 'args'], capture_output=True).stdout)"
        )
    finally:
        victim.kill()
        victim.wait()


@only_on_a_mac
@pytest.mark.parametrize(
    "command",
    [
        ["pbpaste"],
        ["osascript", "-e", 'tell application "Finder" to get name of home'],
        ["open", "-Ra", "TextEdit"],
        ["security", "list-keychains"],
        ["launchctl", "list"],
        ["defaults", "read", "NSGlobalDomain"],
        ["screencapture", "-x", "shot.png"],
        ["sandbox-exec", "-p", "(version 1)(allow default)", "/usr/bin/true"],
    ],
)
def test_blocks_services_of_macos(ground: Ground, command: list[str]) -> None:
    """Programs that act outside through a service fail or say nothing; a plain run of them does better."""
    body = "import json\ndone = subprocess.run(args, capture_output=True, timeout=20)\nprint('CODE', done.returncode, len(done.stdout))"
    result = ground.attack(body, *command)
    confined = result.stdout.text.split("CODE", 1)[1].split()
    plain = ground.control(*command).split("CODE", 1)[1].split()
    assert confined[0] != "0" or int(confined[1]) < int(plain[1]), (confined, plain)


PYTHON = """#!{python}
import multiprocessing, os, pwd, sqlite3, ssl, tempfile
if __name__ == '__main__':
    pwd.getpwuid(os.getuid()); tempfile.mkdtemp(); multiprocessing.Lock(); os.path.realpath('.'); os.cpu_count()
    print('ok')
"""


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("bash", "#!/bin/bash\ncat <<< here > /dev/null && cat <(echo sub) && echo ok\n"),
        ("python", PYTHON),
        ("perl", '#!/usr/bin/perl\nuse strict; use File::Temp; print "ok\\n";\n'),
        ("ruby", "#!/usr/bin/ruby\nrequire 'json'; require 'tmpdir'; Dir.mktmpdir {}; puts 'ok'\n"),
        (
            "node",
            "#!/usr/bin/env node\nconst os = require('os'); os.cpus(); require('fs').realpathSync('.'); console.log('ok')\n",
        ),
    ],
)
def test_interpreters_start(ground: Ground, name: str, body: str) -> None:
    """What scripts need is there: the interpreters of the system and of this machine start and do their usual things."""
    if name in {"perl", "ruby", "node"} and shutil.which(name) is None:
        pytest.skip(f"there is no {name}")
    if name == "ruby" and not Path("/usr/bin/ruby").exists():
        pytest.skip("there is no /usr/bin/ruby")
    skill = ground.base / "skills/start"
    (skill / "scripts").mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: start\ndescription: d\n---\n")
    script = skill / "scripts/start"
    script.write_text(body.replace("{python}", ground.python))
    script.chmod(0o755)
    path = os.environ.get("PATH", "/usr/bin:/bin")
    host = Host(home=ground.base / "home", environ={"PATH": path}, temporary=ground.base / "tmp")
    with Runner(
        workspace=ground.work, skills=[ground.base / "skills"], host=host, require="confined"
    ) as runner:
        result = runner.run("start")
    if result.termination is Termination.REFUSED:
        _missing(result.error.message if result.error else "refused")
    assert result.stdout.text.endswith("ok\n"), (result.error, result.stderr.text)
