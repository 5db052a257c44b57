"""Ordinary programs work confined, with no network and nothing granted but the workspace.

A sandbox that breaks what scripts do every day is switched off. What level 1 can't do is named beside each
case, and a test below holds that it says so.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import attack
import pytest

if TYPE_CHECKING:
    from attack import Scene

PYTHON = {
    "asyncio subprocess": """
import asyncio, sys
async def main():
    p = await asyncio.create_subprocess_exec("/bin/echo", "hi", stdout=asyncio.subprocess.PIPE)
    print((await p.communicate())[0].decode().strip(), await asyncio.to_thread(lambda: 1 + 1))
try:
    asyncio.run(main())
except OSError as e:
    sys.exit(repr(e))
print("done")
""",
    "asyncio streams over loopback": """
import asyncio
async def main():
    async def serve(r, w):
        w.write(await r.readline()); await w.drain(); w.close()
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    r, w = await asyncio.open_connection(*server.sockets[0].getsockname())
    w.write(b"round\\n")
    assert await r.readline() == b"round\\n"
asyncio.run(main()); print("done")
""",
    "multiprocessing fork": """
import multiprocessing as m
def f(q): q.put(42)
if __name__ == "__main__":
    c = m.get_context("fork"); q = c.Queue(); p = c.Process(target=f, args=(q,)); p.start()
    assert q.get(timeout=10) == 42; p.join(); print("done")
""",
    "multiprocessing spawn": """
import multiprocessing as m
def f(q): q.put(42)
if __name__ == "__main__":
    c = m.get_context("spawn"); q = c.Queue(); p = c.Process(target=f, args=(q,)); p.start()
    assert q.get(timeout=20) == 42; p.join(); print("done")
""",
    "multiprocessing forkserver": """
import multiprocessing as m
def f(q): q.put(42)
if __name__ == "__main__":
    c = m.get_context("forkserver"); q = c.Queue(); p = c.Process(target=f, args=(q,)); p.start()
    assert q.get(timeout=20) == 42; p.join(); print("done")
""",
    "process pool (C-24)": """
from concurrent.futures import ProcessPoolExecutor as P
if __name__ == "__main__":
    assert list(P(2).map(abs, [-1, 2])) == [1, 2]; print("done")
""",
    "shared memory and lock": """
from multiprocessing import shared_memory, Lock
s = shared_memory.SharedMemory(create=True, size=10); s.buf[0] = 7; s.close(); s.unlink()
with Lock(): print("done")
""",
    "subprocess in a session of its own": """
import subprocess
assert subprocess.run(["sh", "-c", "echo hi"], capture_output=True, start_new_session=True).stdout == b"hi\\n"
print("done")
""",
    "tempfile with and without TMPDIR (C-27)": """
import os, tempfile
a = tempfile.mkdtemp(); assert a.startswith(os.environ["TMPDIR"])
tempfile.NamedTemporaryFile().write(b"x"); print("done")
""",
    "sqlite3 with a write-ahead log": """
import sqlite3
c = sqlite3.connect("a.db"); c.execute("pragma journal_mode=wal"); c.execute("create table t(x)")
c.execute("insert into t values(1)"); c.commit(); assert c.execute("select x from t").fetchall() == [(1,)]; print("done")
""",
    "ssl and zoneinfo": """
import ssl, zoneinfo, hashlib, random
assert ssl.create_default_context().get_ca_certs() is not None; zoneinfo.ZoneInfo("Europe/Berlin"); random.SystemRandom().random()
print("done")
""",
    "home and user": """
import os, getpass, pathlib
pathlib.Path.home().joinpath("x").write_text("y"); getpass.getuser(); os.path.expanduser("~"); print("done")
""",
    "modes, times, links and renames in the workspace": """
import os, shutil
os.mkdir("d"); open("f", "w").write("x"); os.link("f", "d/g"); os.rename("d/g", "h"); os.symlink("f", "s")
os.truncate("h", 0); shutil.copytree(".", "copy/inner", ignore=lambda *_: ["copy"]); os.utime("f"); os.chmod("f", 0o755)
print("done")
""",
    "devices": """
import os
assert open("/dev/zero", "rb").read(4) == bytes(4); assert len(open("/dev/urandom", "rb").read(4)) == 4
open("/dev/null", "w").write("x"); print("done")
""",
}
SHELL = {
    "here-document and process substitution": "cat <<X | grep -q hi\nhi\nX\ndiff <(echo a) <(echo a) && echo done",
    "standard descriptors by name": "echo x >/dev/stderr; echo done >/dev/stdout",
    "job control": "set -m; sleep 0.1 & wait; echo done",
    "devices (C-26)": "echo x >/dev/null 2>&1; [ $(head -c 4 /dev/urandom | wc -c) = 4 ] && echo done",
    "perl": "perl -e 'use strict; use File::Temp; File::Temp->new; print \"done\\n\"'",
    "tar and gzip": "mkdir t; echo x >t/f; tar czf t.tgz t && rm -r t && tar xzf t.tgz && cat t/f && echo done",
    "sed in place, sort, xargs": "printf 'b\\na\\n' >l; sed -i s/a/c/ l; sort l | xargs -P 2 -n 1 echo && echo done",
    "git init and commit": (
        "git init -q . && echo x >f && git add f && "
        "git -c user.name=u -c user.email=u@example.org commit -qm m && git log --oneline | grep -q m && echo done"
    ),
}
NODE = {
    "child process": "require('child_process').execFile('echo', ['hi'], (e, o) => console.log(e || 'done'))",
    "cpus and interfaces": "const os=require('os'); os.cpus(); os.networkInterfaces(); os.userInfo(); console.log('done')",
    "worker threads": (
        "const {Worker}=require('worker_threads');"
        "new Worker(\"require('worker_threads').parentPort.postMessage(1)\",{eval:true}).on('message',()=>console.log('done'))"
    ),
    "files": "const fs=require('fs'); fs.writeFileSync('n','x'); fs.renameSync('n','m'); console.log('done')",
}
# What level 1 can't do, and what in it is in the way.
NOT_AT_LEVEL_1 = {
    "asyncio streams over loopback": "no socket of any family",
    "multiprocessing fork": "locks need /dev/shm",
    "multiprocessing spawn": "locks need /dev/shm",
    "multiprocessing forkserver": "no unix sockets",
    "process pool (C-24)": "locks need /dev/shm",
    "shared memory and lock": "locks need /dev/shm",
    "cpus and interfaces": "no netlink, no /proc",
}


def cases(table: dict[str, str]) -> pytest.MarkDecorator:
    """Give the cases of a table by name."""
    return pytest.mark.parametrize("name", table)


def works(scene: Scene, name: str) -> None:
    """Check that the script that was written says `done`, or at level 1 that it does not where that is known."""
    scene.options["temporary"] = "/tmp"  # as usual: a unix socket's path has at most 107 bytes (unix(7))
    run = scene.confined()
    if scene.level == 1 and name in NOT_AT_LEVEL_1:
        assert "done" not in run.out.splitlines(), f"level 1 can do it now: {name}"
        return
    assert "done" in run.out.splitlines(), (run.told.get("error"), run.err[-2000:], run.out[-500:])
    assert run.code == 0


@cases(PYTHON)
def test_python_works(scene: Scene, name: str) -> None:
    """What Python scripts do every day works confined."""
    scene.script(PYTHON[name], prelude=False)

    works(scene, name)


@cases(SHELL)
def test_shell_works(scene: Scene, name: str) -> None:
    """What shell scripts do every day works confined."""
    scene.script("#!/bin/bash\n" + SHELL[name] + "\n")

    works(scene, name)


@cases(NODE)
def test_node_works(scene: Scene, name: str) -> None:
    """What Node scripts do every day works confined."""
    node = shutil.which("node", path="/usr/bin:/usr/local/bin")
    if node is None:
        pytest.skip("no node in the system's folders")
    scene.script(f"#!{node}\n{NODE[name]}\n")

    works(scene, name)


@pytest.mark.level(2)
def test_a_terminal_can_be_made(scene: Scene) -> None:
    """A script gets terminals of its own, and none of the caller's (C-25)."""
    scene.script("import pty, os\na, b = pty.openpty(); print(os.ttyname(b)); print('done')", prelude=False)

    run = scene.confined()

    assert run.out.splitlines() == ["/dev/pts/0", "done"], run.err


@pytest.mark.level(2)
def test_a_virtual_environment_with_pip_can_be_made(scene: Scene) -> None:
    """`python -m venv` works in the workspace, and pip starts from it."""
    body = (
        "import subprocess, sys\n"
        "subprocess.run([sys.executable, '-m', 'venv', *sys.argv[1:], 'v'], check=True)\n"
        "print(subprocess.run(['v/bin/python', '-c', 'print(1)'], capture_output=True, text=True).stdout)\nprint('done')"
    )
    scene.script(body, prelude=False)
    plain = scene.plainly()
    extra = [] if plain.code == 0 else ["--without-pip"]  # Debian's python3 has no ensurepip by itself
    shutil.rmtree(scene.workspace / "v", ignore_errors=True)

    run = scene.confined(*extra)

    assert run.out.split() == ["1", "done"], run.err[-1500:]


@pytest.mark.level(2)
def test_renaming_between_folders_of_one_grant_works(scene: Scene) -> None:
    """Files move between folders of one granted root although kept paths lie in it."""
    scene.folder(scene.workspace / ".git" / "hooks")
    scene.file(scene.workspace / ".git" / "config", "[core]\n")
    scene.script(
        "import os\nos.mkdir('a'); os.mkdir('b'); open('a/f','w'); os.rename('a/f','b/f'); print('done')",
        prelude=False,
    )

    works(scene, "rename")

    assert (scene.workspace / "b" / "f").exists()


def test_the_parties_are_those_of_the_machine() -> None:
    """The smoke set runs as every user that the escape suite attacks as."""
    assert attack.PARTIES in {("root", "user"), ("user",)}
