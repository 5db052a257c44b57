"""What a script finds around it: variables, descriptors, terminal, scratch, devices; and what it does not."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from attack import PARTIES, Scene, end, script_python

SECRETS = {
    "MYSQL_PWD": "m-secret",
    "REDISCLI_AUTH": "r-secret",
    "OPENAI_API_KEY": "o-secret",
    "AWS_PROFILE": "p-secret",
    "LD_PRELOAD": "/tmp/x-secret.so",
    "PYTHONPATH": "/tmp/secret",
    "DYLD_INSERT_LIBRARIES": "/tmp/y-secret",
    "SSH_AUTH_SOCK": "/tmp/s-secret",
    "BASH_ENV": "/tmp/b-secret",
    "GIT_DIR": "/tmp/g-secret",
    "http_proxy": "http://h-secret",
    "PERL5LIB": "/tmp/l-secret",
}
DOCUMENTED = {
    "PATH", "HOME", "TMPDIR", "XDG_CACHE_HOME", "USER", "LOGNAME", "LANG", "TZ", "PYTHONUTF8", "PYTHONDONTWRITEBYTECODE",
    "PYTHONPYCACHEPREFIX", "GIT_CONFIG_NOSYSTEM", "SKILLRUN_SKILL", "SKILL_DIR", "WORKSPACE", "SKILLRUN_OUTPUT_DIR", "SKILLRUN_EVENTS_FD",
}  # fmt: skip


def test_blocks_secrets_of_the_environment(scene: Scene) -> None:
    """The caller's variables stay outside, whatever they are called: the list says what goes in (B-16)."""
    scene.environ = {**SECRETS, "PATH": "/usr/bin:/bin", "TZ": "UTC", "USER": "somebody"}
    scene.script("import json; print(json.dumps(dict(os.environ)))")
    run = scene.confined()
    found = json.loads(run.out.splitlines()[-1])
    assert set(found) - {"LC_CTYPE"} <= DOCUMENTED
    assert "secret" not in run.out
    assert "worker-env" not in run.out
    assert all(folder.startswith("/") for folder in found["PATH"].split(":"))
    assert "secret" in scene.plainly(env=scene.shape() | {"OPENAI_API_KEY": "o-secret"}).out


def test_blocks_secrets_that_a_skill_asks_for_by_name(scene: Scene) -> None:
    """Asking for a provider's key does not give it, not even where the ceiling would (B-17)."""
    scene.environ = {**SECRETS, "PATH": "/usr/bin:/bin"}
    scene.ceiling = scene.file(scene.home / "c.yaml", "sandbox: {}\n")
    scene.script(
        "print(dict(os.environ))",
        front="metadata:\n  skillrun:\n    env: [OPENAI_API_KEY, MYSQL_PWD, LD_PRELOAD]",
    )
    run = scene.confined()
    if "raised" not in run.told:  # refusing the whole skill is right as well
        assert run.attempted
        assert "secret" not in run.out
        assert len(run.told["refused"]) == 3


def test_blocks_descriptors_of_the_caller(scene: Scene) -> None:
    """An open, inheritable descriptor of the caller does not reach the script (B-23)."""
    token = scene.secret(scene.outside / "secret.txt")
    body = """
for number in range(3, 200):
    try: print('open', number, os.fstat(number).st_mode, os.pread(number, 100, 0))
    except OSError: pass
"""
    scene.script(body)
    run = scene.confined(opened=[str(scene.outside / "secret.txt")] * 3)
    assert run.attempted
    assert token not in run.out
    assert "open" not in run.out, "a descriptor of skillrun's own is open in the script"
    file = os.open(scene.outside / "secret.txt", os.O_RDONLY)
    try:
        assert token in scene.plainly(pass_fds=[file]).out
    finally:
        os.close(file)


def test_gives_pipes_of_its_own_as_the_standard_streams(scene: Scene) -> None:
    """0, 1 and 2 are pipes made for the run, and stdin is empty."""
    scene.script("""
print('pipes', [stat.S_ISFIFO(os.fstat(n).st_mode) for n in (0, 1, 2)], repr(sys.stdin.read()))
""")
    assert "pipes [True, True, True] ''" in scene.confined().out
    assert "pipes [False" in scene.plainly().out


TYPIST = """
letters = b'echo typed\\n'
for terminal in ('/dev/tty', '/dev/stdin', 0, 1, 2):
    try:
        file = os.open(terminal, os.O_RDWR) if isinstance(terminal, str) else terminal
        for letter in letters: fcntl.ioctl(file, 0x5412, bytes([letter]))
        print('typed into', terminal)
        break
    except OSError as failure: print(terminal, failure)
"""
ON_TERMINAL = """
import fcntl, os, subprocess, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
sys.exit(subprocess.run(sys.argv[1:], stdout=open(os.environ['OUT'], 'w')).returncode)
"""


def on_terminal(scene: Scene, words: list[str], answer: Path, stdin: bytes = b"") -> int:
    """Run something with a real terminal as its controlling one; return how many bytes wait in it afterwards."""
    import fcntl

    leader, follower = os.openpty()
    if scene.party.other:
        os.chown(os.ttyname(follower), scene.party.uid, -1)
    try:
        subprocess.run(
            [script_python(), "-c", ON_TERMINAL, *words],
            stdin=follower,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd=scene.workspace,
            env={"PYTHONPATH": str(scene.party.outfit), "PATH": "/usr/bin:/bin", "OUT": str(answer)},
            timeout=60,
            check=False,
            **scene.party.identity(),
        )
        word = bytearray(4)
        fcntl.ioctl(follower, 0x541B, word)  # FIONREAD
        return int.from_bytes(word, sys.byteorder)
    finally:
        os.close(leader)
        os.close(follower)


def test_blocks_typing_into_the_callers_terminal(scene: Scene) -> None:
    """TIOCSTI reaches no terminal: the script has none, also when skillrun was started from one."""
    scene.script(TYPIST)
    answer = scene.file(scene.outside / "answer", "")
    request = scene.file(scene.outside / "request", json.dumps(scene.request([])) + "\n")
    assert scene.party.python is not None
    worker = [
        "/bin/sh",
        "-c",
        f'exec "$0" -B "$1" < {request}',
        scene.party.python,
        str(scene.party.outfit / "worker.py"),
    ]
    waiting = on_terminal(scene, worker, answer)
    told = json.loads(answer.read_text())
    assert "ATTEMPT" in told["out"], told
    assert "typed into" not in told["out"]
    assert waiting == 0
    control = on_terminal(scene, [str(scene.path)], answer)
    if control == 0 and "Errno 5" in answer.read_text():
        pytest.skip("this kernel lets nobody type into a terminal (dev.tty.legacy_tiocsti)")
    assert control > 0, answer.read_text()


def test_keeps_scratch_private_and_removes_it(scene: Scene) -> None:
    """HOME and TMPDIR are a folder of mode 0700 made for the run, and nothing of it is left (C-27)."""
    scene.script("""
import tempfile
print('made', tempfile.mkdtemp(), os.environ['XDG_CACHE_HOME'])
for name in ('HOME', 'TMPDIR'):
    open(os.path.join(os.environ[name], name), 'w').write('x')
os.makedirs(os.environ['XDG_CACHE_HOME'] + '/deep/er', exist_ok=True)
os.chmod(os.environ['XDG_CACHE_HOME'], 0)
os.symlink(args[0], os.path.join(os.environ['HOME'], 'link'))
""")
    kept = scene.file(scene.outside / "kept/file.txt")
    run = scene.confined(kept.parent)
    assert run.code == 0, run
    assert run.told["scratch_mode"] == 0o700
    assert run.told["scratch"] in run.out
    assert not run.told["scratch_left"]
    assert kept.exists()
    assert list(scene.temporary.iterdir()) == []


def test_removes_scratch_after_a_timeout(scene: Scene) -> None:
    """Also of a run that was ended by its deadline (C-27)."""
    scene.script("open(os.environ['HOME'] + '/file', 'w'); time.sleep(60)")
    run = scene.confined(timeout=0.5)
    assert run.told["termination"] == "timed_out"
    assert not run.told["scratch_left"]
    assert list(scene.temporary.iterdir()) == []


HOLDER = """
where = os.path.join(os.environ['TMPDIR'], 'secret.txt')
open(where, 'w').write(args[0]); os.chmod(where, 0o666); os.chmod(os.environ['TMPDIR'], 0o777)
open('where.new', 'w').write(where); os.rename('where.new', 'where')
for _ in range(200):
    if os.path.exists('stop'): break
    time.sleep(0.05)
"""
SEEKER = """
for _ in range(200):
    if os.path.exists('where'): break
    time.sleep(0.05)
where = open('where').read()
for act in (lambda: open(where).read(), lambda: os.listdir(os.path.dirname(where)), lambda: os.listdir(os.path.dirname(os.path.dirname(where)))):
    try: print(act())
    except OSError as failure: print(failure)
open('stop', 'w')
"""


@pytest.mark.parametrize("grant", ["nothing of it", "the folder above"])
def test_blocks_two_runs_from_reading_each_others_scratch(scene: Scene, grant: str) -> None:
    """Two runs at the same time, of two programs, can't read each other's files (C-27).

    Also where the temporary folder itself was granted for reading.
    """
    token = secrets.token_hex(12)
    front = 'fs_read: ["."]\nfs_write: ["."]'
    if grant == "the folder above":
        text = (
            f'sandbox:\n  fs_read: ["${{workspace}}", "{scene.temporary}"]\n  fs_write: ["${{workspace}}"]\n'
        )
        scene.ceiling = scene.file(scene.home / "c.yaml", text)
        front = f'fs_read: [".", "{scene.temporary}"]\nfs_write: ["."]'
    scene.script(HOLDER, skill=scene.skills / "holder")
    scene.script(SEEKER, front=front)
    other = scene.party.start()
    holding = threading.Thread(
        target=scene.confined, args=(token,), kwargs={"skill": "holder", "worker": other}
    )
    holding.start()
    try:
        until = time.monotonic() + 20
        while not (scene.workspace / "where").exists() and time.monotonic() < until:
            time.sleep(0.02)
        run = scene.confined()
        where = Path((scene.workspace / "where").read_text())
    finally:
        (scene.workspace / "stop").touch()
        holding.join()
        end(other)
    assert run.attempted
    assert token not in run.said
    assert "['secret.txt'" not in run.out
    assert where.parent.name + "']" not in run.out


def test_the_control_of_two_runs_reads_the_others_scratch(scene: Scene) -> None:
    """Unconfined, the same seeker reads what the holder keeps: the test above blocks something real."""
    token = secrets.token_hex(12)
    scene.script(HOLDER, skill=scene.skills / "holder")
    scene.script(SEEKER)
    other = scene.party.start()
    holding = threading.Thread(
        target=scene.confined, args=(token,), kwargs={"skill": "holder", "worker": other}
    )
    holding.start()
    try:
        control = scene.plainly()
    finally:
        (scene.workspace / "stop").touch()
        holding.join()
        end(other)
    assert token in control.out


def test_gives_the_harmless_devices(scene: Scene) -> None:
    """null, zero, full and urandom work without any capability (C-26)."""
    scene.script(
        "#!/bin/sh\necho ATTEMPT\necho x >/dev/null 2>&1 || exit 3\nhead -c 4 /dev/urandom | wc -c\nhead -c 4 /dev/zero | wc -c\n",
        front="timeout: 20",
    )
    run = scene.confined()
    assert run.code == 0, run
    assert run.out.split() == ["ATTEMPT", "4", "4"]


@pytest.mark.parametrize("line", ["/usr/bin/env python3", "/usr/bin/env -S python3 -u", "/usr/bin/env bash"])
def test_runs_what_env_starts(scene: Scene, line: str) -> None:
    """`env` in the interpreter line: the program that it starts may run, with no capability asked for (C-33)."""
    shell = line.endswith("bash")
    text = "echo ATTEMPT $BASH_VERSION" if shell else "import sys; print('ATTEMPT', sys.version_info[0])"
    scene.script(f"#!{line}\n{text}\n", front="timeout: 20")
    run = scene.confined()
    assert run.code == 0, run
    assert run.attempted
    assert run.told["interpreter"].startswith("/")
    assert Path(run.told["interpreter"]).name in {"python3", "bash"}


def test_says_that_process_pools_do_not_start(scene: Scene) -> None:
    """A process pool works, or the run fails soon and its Result says which limit of the level that is (C-24)."""
    scene.script(
        "from concurrent.futures import ProcessPoolExecutor as P\n"
        "if __name__ == '__main__':\n    print(list(P(2).map(abs, [-1, 2])))",
        front="timeout: 20",
    )
    run = scene.confined()
    assert run.attempted
    if scene.level == 2:
        assert "[1, 2]" in run.out, run
        return
    assert run.told["termination"] == "exited"
    if "[1, 2]" not in run.out:
        told = json.dumps(run.told["warnings"]).lower()
        assert any(word in told for word in ("semaphore", "/dev/shm", "process pool", "multiprocessing")), (
            f"nothing says why: {run.told['warnings']}"
        )


def test_parties_are_those_that_can_run() -> None:
    """As root both halves of the suite run, else the one of this user."""
    assert (("root", "user") if os.geteuid() == 0 else ("user",)) == PARTIES


def test_leaves_no_process_behind(scene: Scene) -> None:
    """Whatever a script starts is gone with it, also when it tries to leave its session."""
    mark = secrets.token_hex(8)
    body = """
import subprocess
for start in (dict(start_new_session=True), dict(process_group=0) if sys.version_info > (3, 11) else {}, {}):
    subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)', args[0]], stdin=subprocess.DEVNULL,
                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **start)
time.sleep(0.3)
"""
    scene.script(body)

    def alive() -> list[int]:
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and mark.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
        return found

    run = scene.confined(mark)
    assert run.attempted
    assert run.told["leftovers"] == 3
    assert alive() == []
    scene.plainly(mark)
    left = alive()
    for pid in left:
        os.kill(pid, 9)
    assert len(left) == 3
