"""The kernel's own word on denials: read from the audit log where that can be read, asked for with `trace`."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from arena import eventually

from skillrun.launch.audit import Audit, suspects
from skillrun.launch.denials import Suspect
from skillrun.running.call import Call

if TYPE_CHECKING:
    from arena import Arena

# As Linux 6.18 wrote them; 1423 is a denial, 1424 names the domain's maker, 1300 and 1327 are other programs'.
DOMAIN = (
    1424,
    'audit(1796040994.032:22): domain=186d7b328 status=allocated mode=enforcing pid=300 uid=0 exe="/usr/bin/python3" comm="python3"',
)
OTHER = (
    1424,
    'audit(1796040994.032:23): domain=186d7b999 status=allocated mode=enforcing pid=301 uid=0 exe="/x pid=300" comm="x"',
)


def access(blockers: str, rest: str, domain: str = "186d7b328") -> tuple[int, str]:
    """Write one denial."""
    return 1423, f"audit(1796040994.032:22): domain={domain} blockers={blockers} {rest}"


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (access("fs.read_file", 'path="/etc/shadow" dev="vda" ino=7'), ("read", "/etc/shadow")),
        (access("fs.read_file", 'path=2F746D702F6120622E747874 dev="vda" ino=7'), ("read", "/tmp/a b.txt")),
        (access("fs.read_dir", 'path="/home/ada" dev="vda" ino=7'), ("read", "/home/ada")),
        (access("fs.make_reg", 'path="/home/ada" dev="vda" ino=7'), ("write", "/home/ada")),
        (access("fs.write_file,fs.truncate", 'path="/x" dev="vda" ino=7'), ("write", "/x")),
        (access("fs.read_file,fs.write_file", 'path="/x" dev="vda" ino=7'), ("write", "/x")),
        (access("net.connect_tcp", "daddr=192.0.2.1 dest=80"), ("network", None)),
        (access("scope.signal", 'opid=1 ocomm="systemd"'), None),
        (access("fs.read_file", 'path="/x" dev="vda" ino=7', domain="186d7b999"), None),
        ((1300, 'audit(1:2): arch=c000003e domain=186d7b328 blockers=fs.read_file path="/x"'), None),
        ((1423, ""), None),
        (access("", 'path="/x"'), None),
    ],
)  # fmt: skip
def test_what_a_record_says(record: tuple[int, str], expected: tuple[str, str | None] | None) -> None:
    """A denial of the run's own domain is one, with its path; of any other domain or record nothing is taken."""
    # The maker is named only behind the first denial.
    found = list(suspects([record, DOMAIN, OTHER], 300))
    wanted = [] if expected is None else [Suspect(expected[0], expected[1] and Path(expected[1]), "kernel")]
    assert found == wanted


def test_without_its_maker_a_domain_is_nobodys() -> None:
    """When the record that names the maker was lost, nothing is told of the run: no guess is passed off as the kernel's."""
    assert not list(suspects([access("fs.read_file", 'path="/x"')], 300))


def test_an_old_kernel_is_not_asked() -> None:
    """Before ABI 7 Landlock logs nothing."""
    assert "ABI 6" in str(Audit.opened(6))


LEVELS = ("level-1", "level-2")
ASKS = """
import os, socket
for path in ({secret!r}, {absent!r}, "/etc/ld.so.cache", "/proc/1/environ", os.environ["TMPDIR"]):
    try: open(path)
    except OSError: pass
for change in (lambda: open({new!r}, "w"), lambda: os.mkdir("sub"), lambda: os.unlink({secret!r}),
               lambda: open(os.environ["TMPDIR"] + "/own", "w"), lambda: open("/dev/null", "w"),
               lambda: open({out!r} + "/granted", "w")):
    try: change()
    except OSError: pass
raise SystemExit({code})
"""


def asking(arena: Arena, code: int = 3) -> Path:
    """Write a script that asks for much and says nothing of what it was denied; return the secret."""
    secret = arena.root / "data x.txt"
    secret.write_text("content")
    new, absent = str(arena.workspace / "new"), str(arena.root / "absent")
    arena.script(ASKS.format(secret=str(secret), absent=absent, new=new, out=str(arena.out), code=code))
    return secret


@pytest.mark.parametrize("level", LEVELS)
def test_the_kernel_tells_what_a_silent_script_was_denied(arena: Arena, level: str) -> None:
    """Each denied path once, with what was asked of it and the kernel's evidence; nothing that was allowed or is not there."""
    secret = asking(arena)
    with arena.runner(level) as runner:
        assert not runner.run("demo").denials
        result = runner.run("demo", trace=True)
        assert result.exit_code == 3
        found = {(one.operation, one.path) for one in result.denials}
        assert all(one.evidence == "kernel" for one in result.denials)
        wanted = {("read", secret), ("write", arena.workspace / "new"), ("write", arena.workspace / "sub")}
        assert wanted <= found <= {*wanted, ("write", secret)}
        # At level 2 the name is in a /tmp of the run's own, where a write is nobody's loss.
        assert (("write", secret) in found) == (level == "level-1")
    assert secret.read_text() == "content"
    arena.assert_clean()


@pytest.mark.parametrize("level", LEVELS)
def test_a_run_that_succeeds_and_one_that_is_not_traced_tell_nothing(arena: Arena, level: str) -> None:
    """The sandbox is not blamed when nothing failed."""
    asking(arena, code=0)
    with arena.runner(level) as runner:
        assert not runner.run("demo", trace=True).denials
    arena.assert_clean()


@pytest.mark.parametrize("level", LEVELS)
def test_a_traced_run_is_confined_as_any_other(arena: Arena, level: str) -> None:
    """The listener never reaches the script: it has no descriptor beyond its three, and can't make a listener of its own."""
    arena.script(
        "import ctypes, os\n"
        "def there(n):\n"
        "    try: return bool(os.fstat(n))\n"
        "    except OSError: return False\n"
        "print([n for n in range(256) if there(n)])\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "print(libc.prctl(39, 0, 0, 0, 0))\n"  # PR_GET_NO_NEW_PRIVS
        "fprog = (ctypes.c_byte * 16)()\n"
        "print(libc.syscall(317 if os.uname().machine == 'x86_64' else 277, 1, 8, fprog) < 0)\n"
    )
    with arena.runner(level) as runner:
        plain, traced = runner.run("demo"), runner.run("demo", trace=True)
    assert traced.stdout.text == plain.stdout.text == "[0, 1, 2]\n1\nTrue\n"
    assert traced.guarantees == plain.guarantees
    arena.assert_clean()


@pytest.mark.parametrize("level", LEVELS)
def test_a_script_that_asks_without_end_is_bounded(arena: Arena, level: str) -> None:
    """Ten thousand opens of denied paths, by many processes, and a path that is not a text: the run ends, ten are told."""
    secret = arena.root / "dark"
    secret.mkdir()
    for number in range(40):
        (secret / str(number)).write_text("x")
    arena.script(
        "import ctypes, os\n"
        "libc = ctypes.CDLL(None)\n"
        "for _ in range(3): os.fork()\n"
        "libc.open(ctypes.c_void_p(1), 0); libc.open(ctypes.c_void_p(2**63 - 1), 0); libc.open(None, 0)\n"
        "libc.openat(-5, b'relative', 0); libc.openat(2**31 - 1, b'relative', 0); libc.connect(0, None, -1)\n"
        "for n in range(1200):\n"
        f"    libc.open({str(secret)!r}.encode() + b'/%d' % (n % 40), 0)\n"
        "raise SystemExit(3)\n"
    )
    with arena.runner(level) as runner:
        result = runner.run("demo", trace=True)
    assert result.exit_code == 3
    assert len(result.denials) == 10
    assert {one.path.parent for one in result.denials if one.path is not None} == {secret}
    arena.assert_clean()


@pytest.mark.parametrize("level", LEVELS)
def test_a_traced_run_ends_at_its_deadline_and_when_it_is_cancelled(arena: Arena, level: str) -> None:
    """A script that opens files for ever is over at the deadline, and nothing of it or of the listener is left."""
    arena.script("while True:\n    try: open('/root/x')\n    except OSError: pass\n")
    with arena.runner(level) as runner:
        result = runner.run("demo", trace=True, timeout=1)
        assert result.termination.value == "timed_out"
        handle = runner.start(Call("demo", trace=True))
        assert eventually(lambda: handle.pid is not None)
        handle.cancel()
        assert handle.wait(30).termination.value == "cancelled"
    arena.assert_clean()


@pytest.mark.parametrize("level", LEVELS)
def test_a_kernel_without_listeners_is_said(
    arena: Arena, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the kernel takes no listener the run goes on as it is, and its result says why nothing was told."""
    asking(arena)
    monkeypatch.setattr("skillrun.launch.notify.program", lambda _: b"\xff" * 8)  # no program: EINVAL
    monkeypatch.setattr("skillrun.launch.audit.Audit.opened", lambda _: "not here")
    with arena.runner(level) as runner:
        result = runner.run("demo", trace=True)
    assert result.exit_code == 3
    assert not result.denials
    assert [one.rule for one in result.warnings].count("trace-unavailable") == 1
    assert "no listener" in next(one.message for one in result.warnings if one.rule == "trace-unavailable")
    arena.assert_clean()


@pytest.mark.parametrize("level", LEVELS)
def test_where_only_the_audit_log_tells_the_run_is_told_to_log(
    arena: Arena, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a listener, and with a log that can be read, the script's domain is one that logs what is executed."""

    class Log:
        denied = staticmethod(lambda _pid: ())
        close = staticmethod(lambda: None)

    def none(_machine: str) -> None:
        raise OSError(errno.ENOMEM, "no room")

    asking(arena)
    plans = []
    monkeypatch.setattr("skillrun.launch.audit.Audit.opened", lambda _: Log())
    monkeypatch.setattr("skillrun.launch.notify.Notify", none)
    with arena.runner(level) as runner:
        for trace in (True, False):
            result = runner.run("demo", trace=trace, on_plan=lambda _, plan: plans.append(plan))
            assert (result.exit_code, result.warnings) == (3, ())
    assert [plan.wire.get("traced") for plan in plans] == [True, None]
    arena.assert_clean()


COMMON = """
import os, subprocess
os.chdir("out")
subprocess.run(["/bin/mkdir", "-p", os.environ["WORKSPACE"] + "/out/x/y"], check=True)
os.symlink({data!r}, "link"); os.rename("link", "renamed"); os.symlink({data!r}, "other"); os.unlink("other")
def asking(call, *arguments):
    try: call(*arguments)
    except OSError: pass
asking(os.symlink, "nowhere", "renamed")
asking(os.mkdir, {folder!r})
asking(os.unlink, {folder!r} + "/absent")
asking(os.rename, {folder!r} + "/absent", "here")
asking(os.open, {folder!r}, os.O_PATH)
asking(os.open, {folder!r} + "/absent", os.O_WRONLY)
for path in ("/dev/stdin", "/dev/../dev/stdin", "/tmp/../proc/self/status", "proc/status", "/dev/stdout"):
    asking(open, path)
for number in range(1500): os.symlink("l%d" % (number + 1), "l%d" % number)
os.symlink({data!r}, "l1500")
asking(open, "l0")
asking(open, "l1455")
raise SystemExit(3)
"""


@pytest.mark.parametrize("level", LEVELS)
def test_what_nobody_would_have_got_is_no_denial(arena: Arena, level: str) -> None:
    """What is there already or not there, a link's own name, what /proc says of the owner, a chain that has no end."""
    folder = arena.root / "folder"
    folder.mkdir()
    data = folder / "data"
    data.write_text("content")
    (arena.workspace / "proc").symlink_to("/proc/self")
    arena.script(COMMON.format(data=str(data), folder=str(folder)))
    stdin = os.dup(0)
    try:
        with data.open() as mine, arena.runner(level) as runner:
            os.dup2(mine.fileno(), 0)  # what /dev/stdin leads to for the owner
            result = runner.run("demo", trace=True)
    finally:
        os.dup2(stdin, 0)
        os.close(stdin)
    assert result.exit_code == 3, result.stderr.text
    assert not result.denials
    arena.assert_clean()


def test_what_a_run_made_for_itself_is_no_denial(arena: Arena) -> None:
    """At level 2 a name in /tmp is the run's own once it has made it, whatever the host has there."""
    hosts = arena.root / "cache"
    hosts.mkdir()
    (hosts / "entry").write_text("the host's")
    arena.script(
        f"import os\nos.makedirs({str(hosts)!r}, exist_ok=True)\nopen({str(hosts)!r} + '/entry', 'w').close()\n"
        f"open({str(hosts)!r} + '/entry').close()\nos.listdir({str(hosts)!r})\nraise SystemExit(3)\n"
    )
    with arena.runner("level-2") as runner:
        result = runner.run("demo", trace=True)
    assert result.exit_code == 3, result.stderr.text
    assert not result.denials
    arena.assert_clean()


TABLE = """
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
skipped = {skipped!r}
signal.signal(signal.SIGALRM, signal.SIG_DFL)
for number in range(480):
    for value in (-1, 0):
        if number in skipped: continue
        pid = os.fork()
        if pid == 0:
            signal.alarm(2)
            got = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(value)] * 6)
            os._exit(ctypes.get_errno() if got < 0 else 200)
        print(number, value, os.waitpid(pid, 0)[1])
"""


@pytest.mark.parametrize("level", LEVELS)
def test_no_system_call_answers_otherwise_when_it_is_traced(arena: Arena, level: str) -> None:
    """The second filter changes the answer of no call, whatever the first one says of it."""
    # What forks, waits, ends or signals says nothing by its exit status: <asm/unistd_64.h>, <asm-generic/unistd.h>.
    x86 = {
        7,
        15,
        34,
        56,
        57,
        58,
        60,
        61,
        62,
        109,
        112,
        130,
        200,
        231,
        234,
        247,
        270,
        271,
        232,
        281,
        202,
        23,
        127,
        128,
    }
    arm = {72, 73, 93, 94, 95, 98, 129, 130, 131, 133, 137, 139, 154, 157, 220, 260, 22}
    arena.script(TABLE.format(skipped=x86 if os.uname().machine == "x86_64" else arm))
    with arena.runner(level) as runner:
        plain, traced = runner.run("demo"), runner.run("demo", trace=True)
    assert plain.exit_code == 0, plain.stderr.text
    assert len(plain.stdout.text.splitlines()) > 800
    assert traced.stdout.text == plain.stdout.text
    arena.assert_clean()


def test_an_unconfined_run_is_not_traced(arena: Arena) -> None:
    """Where nothing is denied there is nothing to tell, and nothing to explain."""
    asking(arena)
    with arena.runner("passthrough") as runner:
        result = runner.run("demo", trace=True)
    assert not result.denials
    assert "trace-unavailable" not in [one.rule for one in result.warnings]
    arena.assert_clean()


def test_the_kernel_tells_of_a_real_denial(arena: Arena) -> None:
    """At level 1 a read outside the grant is told by the kernel, though the script says nothing of it."""
    opened = Audit.opened(7)
    if isinstance(opened, str):
        if os.environ.get("SKILLRUN_REQUIRE_AUDIT") == "1":
            pytest.fail(opened)
        pytest.skip(opened)
    opened.close()
    secret = arena.root / "data x.txt"
    secret.write_text("content")
    arena.script(f"try: open({str(secret)!r})\nexcept OSError: pass\nraise SystemExit(3)")
    with arena.runner("level-1") as runner:
        assert not runner.run("demo").denials
        denials = runner.run("demo", trace=True).denials
    assert [(one.operation, one.path, one.evidence, one.fix) for one in denials] == [
        ("read", secret, "kernel", f"--read '{secret}'")
    ]
