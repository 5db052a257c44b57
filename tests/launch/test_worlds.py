"""Worlds that are built ahead of their run: used for that run alone, and as it is planned when it comes."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from arena import Background, children, eventually, launcher_pid, scratches, spare_pids, state

from skillrun.confine import landlock, stock, world
from skillrun.confine.child import StepError
from skillrun.confine.launcher import Launcher
from skillrun.confine.leader import Foreseen, Init
from skillrun.confine.stock import Stock
from skillrun.errors import ConfigError
from skillrun.launch.taught import Taught, written
from skillrun.sandbox import landscape as landscapes
from skillrun.sandbox.linux import level2
from skillrun.sandbox.policy import Access, Kept, PathRule

if TYPE_CHECKING:
    from arena import Arena

    from skillrun import Runner

READ = "import sys\nprint(open(sys.argv[1]).read())\n"
CEILING = """sandbox:
  fs_read: ["${workspace}"]
  fs_write: ["${workspace}/out"]
  deny: [secret, later, private, private/key]
"""
SETTLED = 0.05  # seconds in which a launcher has taken note of a word


def filtered(pid: int) -> bool:
    """Tell whether a process has a filter: a spare of level 2 loads it last, once its world is built."""
    words = Path(f"/proc/{pid}/status").read_text().split()
    return words[words.index("Seccomp:") + 1] == "2"


def built(runner: Runner) -> list[int]:
    """List the spares that wait in a world of their own."""
    return [pid for pid in spare_pids(runner) if state(pid) == "S" and filtered(pid)]


def read(runner: Runner, name: str) -> str | None:
    """Have the script read a file of the workspace; None when it could not."""
    result = runner.run("demo", arguments=[str(runner.workspace / name)], timeout=60)
    assert result.error is None, result.error
    return result.stdout.text.strip() if result.exit_code == 0 else None


def with_world(arena: Arena) -> Runner:
    """Give a runner of level 2 that has a world built for the next run, in which the workspace can be read."""
    arena.script(READ)
    arena.ceiling.write_text(CEILING)
    (arena.workspace / "plain").write_text("plain")
    runner = arena.runner("level-2")
    for _ in range(2):
        time.sleep(SETTLED)
        assert read(runner, "plain") == "plain"
    await_world(runner)
    return runner


def await_world(runner: Runner) -> int:
    """Wait until a world is there and its leader has said so; return its process id."""
    assert eventually(lambda: len(built(runner)) == 1)
    time.sleep(SETTLED)
    return built(runner)[0]


def test_the_third_run_of_a_kind_has_its_world_built_ahead(arena: Arena) -> None:
    """What waited in a world leads the next run, in the scratch folder that it was built for."""
    arena.script("import os, time\nprint(os.environ['HOME'], flush=True)\ntime.sleep(0.2)\n")
    with arena.runner("level-2") as runner:
        assert runner.run("demo", timeout=60).ok
        time.sleep(SETTLED)
        assert not built(runner), "nothing is built for what came once"
        assert runner.run("demo", timeout=60).ok
        waiting = await_world(runner)
        ahead = runner._scratches.ahead[0]
        run = Background(runner, timeout=60)
        assert eventually(lambda: bool(children(waiting)))
        assert run.result(within=30).stdout.text.strip() == str(ahead)
    arena.assert_clean()


def test_other_skills_have_no_use_for_a_world(arena: Arena) -> None:
    """Each run has what was granted to it, in whatever order they come; the two share one launcher."""
    arena.script("import os; print(os.path.exists(os.environ['SKILL_DIR'] + '/../other'))\n")
    arena.script("print(1)\n", skill="other")
    with arena.runner("level-2") as runner:
        for name in ("demo", "demo", "other", "demo", "other", "other", "demo", "demo", "demo"):
            result = runner.run(name, timeout=60)
            assert result.ok, result.error
            assert result.stdout.text == ("1\n" if name == "other" else "False\n")
            time.sleep(SETTLED)
    arena.assert_clean()


def test_a_secret_that_appears_while_a_world_waits_is_denied(arena: Arena) -> None:
    """A file that is denied by its name is made after the world was built in which it would be in reach."""
    with with_world(arena) as runner:
        (arena.workspace / "other").write_text("other")
        assert read(runner, "other") == "other", "a control: what is granted is there at once"
        await_world(runner)
        (arena.workspace / "later").write_text("hidden")
        assert read(runner, "later") is None
    arena.assert_clean()


def test_a_folder_that_was_replaced_is_seen_as_it_is(arena: Arena) -> None:
    """The world was built with the folder that had the name before."""
    with with_world(arena) as runner:
        arena.workspace.rename(arena.root / "before")
        arena.out.mkdir(parents=True)
        (arena.workspace / "plain").write_text("new")
        assert read(runner, "plain") == "new"
    arena.assert_clean()


def test_a_secret_with_a_second_name_that_is_put_back_is_not_in_reach(arena: Arena) -> None:
    """Unlinked and linked again it is the same file, and the kernel has taken away the cover that was on it."""
    arena.workspace.mkdir(exist_ok=True)
    (arena.workspace / "secret").write_text("hidden")
    with with_world(arena) as runner:
        assert read(runner, "secret") is None, "a control: it is denied"
        await_world(runner)
        os.link(arena.workspace / "secret", arena.root / "second")
        time.sleep(SETTLED)
        (arena.workspace / "secret").unlink()
        os.link(arena.root / "second", arena.workspace / "secret")
        (arena.root / "second").unlink()
        result = runner.run("demo", arguments=[str(arena.workspace / "secret")], timeout=60)
        assert "hidden" not in result.stdout.text
        assert not result.ok
        assert result.error is None or result.error.rule == "changed-before-start"
        assert read(runner, "secret") is None, "the next run is denied it as ever"
        assert read(runner, "plain") == "plain"
    arena.assert_clean()


def test_a_secret_that_gets_the_number_of_the_one_before_is_denied(arena: Arena) -> None:
    """Removed and made again it has the same inode on many file systems: the next run neither reads it nor fails of it."""
    arena.workspace.mkdir(exist_ok=True)
    secret = arena.workspace / "secret"
    secret.write_text("hidden")
    with with_world(arena) as runner:
        for _ in range(4):
            number = secret.stat().st_ino
            for _ in range(200):  # until the number is given out again
                secret.unlink()
                secret.write_text("hidden again")
                if secret.stat().st_ino == number:
                    break
            assert read(runner, "secret") is None
            assert read(runner, "plain") == "plain"
            time.sleep(SETTLED)
    arena.assert_clean()


def test_what_is_denied_below_what_is_denied_fails_no_run(arena: Arena) -> None:
    """Its cover can't be looked at once the folder above it is covered: then nobody can get to it."""
    private = arena.workspace / "private"
    private.mkdir(parents=True)
    (private / "key").write_text("hidden")
    with with_world(arena) as runner:
        for _ in range(5):
            assert read(runner, "private/key") is None
            assert read(runner, "plain") == "plain"
            time.sleep(SETTLED)
    arena.assert_clean()


def test_a_link_with_a_protected_name_is_covered_with_what_it_leads_to_now(arena: Arena) -> None:
    """A file that may be read is read by it, the one that is there now; what is replaced meanwhile makes another world."""
    guide = arena.workspace / "guide"
    arena.out.mkdir(parents=True, exist_ok=True)
    (arena.out / "CLAUDE.md").symlink_to("../guide")
    guide.write_text("0")
    with with_world(arena) as runner:
        for turn in range(1, 6):
            assert read(runner, "out/CLAUDE.md") == str(turn - 1)
            time.sleep(SETTLED)
            (arena.workspace / "new").write_text(str(turn))
            (arena.workspace / "new").rename(guide)
    arena.assert_clean()


def test_a_link_is_covered_with_nothing_that_is_not_granted(tmp_path: Path) -> None:
    """The plan says what it is covered with: a file below a grant, as that comes out, else nothing that can be read."""
    top = tmp_path.resolve()
    work, out = top / "work", top / "work/out"
    out.mkdir(parents=True)
    (work / "closed").mkdir()
    for name in ("plain", "closed/file", "denied"):
        (work / name).write_text(name)
    (top / "outside").write_text("outside")
    ends = {
        "one": "../plain", "two": "../closed/file", "three": "../denied", "four": top / "outside", "five": "/etc/shadow",
        "six": "../closed", "seven": "nowhere", "eight": "one", "nine": "nine", "ten": "/proc/self/environ",
        "eleven": "pipe", "twelve": "/usr/bin/env", "thirteen": "/usr/bin", "fourteen": "/usr/binary",
    }  # fmt: skip
    for name, end in ends.items():
        (out / name).symlink_to(end)
    os.mkfifo(out / "pipe")
    kept = [Kept(out / name, "kept", readable=True) for name in ends]
    hidden = [Kept(work / name, "denied", readable=False) for name in ("closed", "denied")]
    policy = SimpleNamespace(
        rules=(
            PathRule(work, Access.READ, "granted"),
            PathRule(out, Access.WRITE, "granted"),
        ),
        kept=(*kept, *hidden),
        links=(),
        cwd=work,
        argv=("/bin/true",),
        scratch=top / "scratch",
    )
    looked = landscapes.survey(policy, split=False)  # type: ignore[arg-type]
    found = level2.entries(policy, looked, system=["/usr/bin"])  # type: ignore[arg-type]
    modes = {name: found[out / name] for name in ends}
    assert modes == {name: "link" if name in {"one", "eight", "twelve"} else "deny" for name in ends}
    assert level2.entries(policy, looked)[out / "twelve"] == "deny", "a run that does not have it"  # type: ignore[arg-type]
    assert found[work / "denied"] == "deny", "that something which may be read leads there changes nothing"


@pytest.mark.parametrize("there", ["other", "folder"])
def test_a_link_is_covered_with_what_was_planned_or_the_run_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: str
) -> None:
    """Between the plan and the mounts somebody turns the way to its end elsewhere: what was cloned is looked at, not the path."""
    (tmp_path / "end").write_text("granted")
    (tmp_path / "other").write_text("not granted")
    (tmp_path / "folder").mkdir()
    planned = (tmp_path / "end").stat()
    one = object.__new__(world.World)
    attached: list[tuple[str, int]] = []
    monkeypatch.setattr(one, "_cover", lambda path, cover: attached.append((path, cover)))
    led = {"to": "end"}
    monkeypatch.setattr(
        world.mounts, "clone_tree", lambda *_, **__: os.open(tmp_path / led["to"], os.O_RDONLY)
    )
    end = ["/work/end", planned.st_dev, planned.st_ino]
    one._cover_link("/work/CLAUDE.md", end)
    assert [path for path, _ in attached] == ["/work/CLAUDE.md"], "a control"
    os.close(attached.pop()[1])
    led["to"] = there
    if there == "folder":
        found = (tmp_path / "folder").stat()
        end = ["/work/end", found.st_dev, found.st_ino]
    with pytest.raises(landlock.ChangedError, match="/work/end"):
        one._cover_link("/work/CLAUDE.md", end)
    assert not attached


def test_a_folder_that_is_exchanged_while_it_is_looked_at_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept in it was seen, and then a link was in its place: a named error, not a plan with a hole in it."""
    out = tmp_path.resolve() / "out"
    (out / "d").mkdir(parents=True)
    (out / "d/CLAUDE.md").write_text("x")
    policy = SimpleNamespace(
        rules=(PathRule(out, Access.WRITE, "granted"),),
        kept=(Kept(out / "d/CLAUDE.md", "kept", readable=True),),
        links=(),
        cwd=out,
        argv=("/bin/true",),
    )
    assert out / "d" in landscapes.survey(policy, split=False).pins, "a control"  # type: ignore[arg-type]
    real = landscapes._spots
    monkeypatch.setattr(
        landscapes, "_spots", lambda paths, walker: real([one for one in paths if one != out / "d"], walker)
    )
    with pytest.raises(ConfigError, match="was replaced while it was looked at"):
        landscapes.survey(policy, split=False)  # type: ignore[arg-type]


def test_covers_that_are_gone_are_missed(tmp_path: Path) -> None:
    """Looked at from where nothing is covered: each kind of cover is found to be missing, and what was never there is not."""
    file, folder, link = tmp_path / "file", tmp_path / "folder", tmp_path / "link"
    file.write_text("x")
    folder.mkdir()
    link.symlink_to("file")

    def entry(path: Path, mode: str) -> list[Any]:
        found = path.lstat()
        return [str(path), mode, found.st_dev, found.st_ino]

    for path, mode in ((file, "ro"), (file, "deny"), (folder, "deny"), (folder, "cover"), (link, "link")):
        with pytest.raises(landlock.ChangedError, match=path.name):
            world.check_covers([entry(path, mode)])
    other = [str(file), "deny", 1, 1]
    world.check_covers([other, entry(folder, "rw"), ["", "rw", 0, 0], [str(tmp_path / "none"), "deny", 1, 1]])
    with pytest.raises(landlock.ChangedError):
        world.check_covers([[str(tmp_path / "none"), "ro", 1, 1]])


MOUNTING = """
import os, subprocess, sys, time
sys.path[:0] = {path!r}
from pathlib import Path
from arena import Arena, eventually
import test_worlds as here

arena = Arena(Path(sys.argv[1]))
with here.with_world(arena) as runner:
    (waiting,) = here.built(runner)
    below = arena.workspace / "below"
    below.mkdir()
    time.sleep(0.05)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(below)], check=True)
    (below / "file").write_text("mounted")
    assert here.read(runner, "below/file") == "mounted", "what was mounted after the world was built"
    here.await_world(runner)
    subprocess.run(["umount", str(below)], check=True)
    assert eventually(lambda: not here.built(runner)), "a world that waits holds what was unmounted"
    assert here.read(runner, "below/file") is None
    assert here.read(runner, "plain") == "plain"
print("fine")
"""


@pytest.mark.skipif(os.getuid() != 0, reason="mounting takes root")
def test_a_mount_of_the_host_ends_the_worlds_that_wait(tmp_path: Path) -> None:
    """What is mounted meanwhile is seen by the next run, and what is unmounted is held by nobody."""
    program = MOUNTING.format(path=[str(Path(__file__).parents[1] / "kill"), str(Path(__file__).parent)])
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", sys.executable, "-c", program, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout == "fine\n", done.stdout + done.stderr


def test_a_request_that_comes_with_a_mount_finds_no_world(monkeypatch: pytest.MonkeyPatch) -> None:
    """The word of the kernel may lie there unread: it is asked for before a world is given away."""
    one = Stock(-1, select.poll())
    one._bases = {1: {"level": 2}}
    dropped: list[int] = []
    monkeypatch.setattr(one, "drop_worlds", lambda: dropped.append(1))
    monkeypatch.setattr(one, "new", lambda *_: "new")
    one._changes = type("Changed", (), {"poll": lambda *_: [(one.mounts, select.POLLPRI)]})()
    assert list(one.leaders({"base": 1})) == ["new"]
    assert dropped == [1]
    os.close(one.mounts)


class Leader:
    """A spare that is nothing but what it was made for."""

    def __init__(self, key: int, foreseen: Foreseen | None, *, ready: bool | None = True) -> None:
        self.key, self.foreseen, self.ready, self.dropped = key, foreseen, ready, False
        self.level = 2
        self.hear = lambda: None
        self._end, self._other = os.pipe()

    fits = stock.Spare.fits

    def fileno(self) -> int:
        """Give a number."""
        return self._end

    def usable(self) -> bool:
        """Tell what it was told."""
        return self.ready is not False

    def drop(self) -> None:
        """Note it."""
        self.dropped = True

    def close(self) -> None:
        """Close it."""
        os.close(self._end)
        os.close(self._other)


FRAME = {"cwd": ["/", 0, 0]}
ONE, TWO = ["/runs/1", 5, 1], ["/runs/2", 5, 2]


@pytest.fixture
def shelf() -> Any:
    """Give a stock that forks nobody, and a function that puts a leader on it."""
    made: list[Leader] = []
    one = Stock(-1, select.poll())
    opened, one.mounts = one.mounts, 0
    one._bases, one._frames = {1: {"level": 2}, 2: {"level": 2}}, {7: FRAME, 8: FRAME}
    one._changes = type("Quiet", (), {"poll": lambda *_: []})()  # type: ignore[assignment]

    def new(_: object, key: int, foreseen: Foreseen | None = None, *, ready: bool | None = True) -> Leader:
        made.append(Leader(key, foreseen, ready=ready))
        return made[-1]

    one.new = new  # type: ignore[assignment, method-assign]

    def put(key: int, foreseen: Foreseen | None, *, ready: bool | None = True) -> Leader:
        leader = new(None, key, foreseen, ready=ready)
        one._spares[leader.fileno()] = leader  # type: ignore[assignment]
        one._poll.register(leader.fileno(), select.POLLIN)
        return leader

    yield one, put
    for leader in made:
        leader.close()
    os.close(opened)


def test_a_world_serves_the_run_it_was_built_for_alone(shelf: Any) -> None:
    """Another base, another frame or another scratch folder, and somebody else leads the run."""
    one, put = shelf
    built_ahead = put(1, Foreseen(7, FRAME, ONE))
    plain = put(1, None)
    right = {"base": 1, "frame": 7, "scratch": ONE}
    assert next(iter(one.leaders({**right, "frame": 8}))) is plain
    one._spares[plain.fileno()] = plain
    assert next(iter(one.leaders({**right, "scratch": TWO}))) is plain
    one._spares[plain.fileno()] = plain
    assert next(iter(one.leaders({"base": 1}))) is plain
    assert next(iter(one.leaders({**right, "base": 2}))) not in {plain, built_ahead}
    assert next(iter(one.leaders(right))) is built_ahead
    assert built_ahead.fileno() not in one._spares, "and never again"


def test_a_world_that_has_not_said_it_is_whole_is_not_used(shelf: Any) -> None:
    """It may be one that can't be built ahead: the run would fail of that."""
    one, put = shelf
    put(1, Foreseen(7, FRAME, ONE), ready=None)
    plain = put(1, None)
    assert next(iter(one.leaders({"base": 1, "frame": 7, "scratch": ONE}))) is plain
    put(1, Foreseen(7, FRAME, TWO), ready=False)
    leaders = list(one.leaders({"base": 1, "frame": 7, "scratch": TWO}))
    assert len(leaders) == 1
    assert leaders[0].foreseen is None


def test_what_has_mounts_of_its_own_goes_with_a_change_of_those_of_the_host(shelf: Any) -> None:
    """A leader that waits for a plan may not hear of a mount either, as where none is shared; a group has none."""
    one, put = shelf
    worlds, group = (put(1, None), put(1, Foreseen(7, FRAME, ONE))), put(1, None)
    group.level = 1
    one.drop_worlds()
    assert list(one._spares.values()) == [group]
    assert all(leader.dropped for leader in worlds)


def test_a_stock_holds_one_of_each_kind(shelf: Any) -> None:
    """What was made for another run goes when the next one is expected; what is still good stays."""
    one, put = shelf
    stale, plain, other = put(1, Foreseen(7, FRAME, ONE)), put(1, None), put(2, None)
    one.expect({"base": 1, "frame": 7, "next": TWO})
    one.restock(worlds=True)
    waiting = list(one._spares.values())
    assert len(waiting) == 2
    assert plain in waiting
    assert stale.dropped
    assert other.dropped
    assert next(leader for leader in waiting if leader.foreseen).foreseen.asked == (7, TWO)
    one.restock(worlds=True)
    assert list(one._spares.values()) == waiting
    one.restock(worlds=False)
    assert list(one._spares.values()) == [plain]
    one.restock(worlds=True)
    assert len(one._spares) == 2
    one.expect({"base": 1, "frame": None, "next": TWO})
    one.restock(worlds=True)
    assert list(one._spares.values()) == [plain]


@pytest.mark.parametrize(
    "terms", [{"frame": 7}, {"frame": 9, "next": TWO}, {"next": TWO}, {"frame": 7, "next": None}]
)
def test_nothing_is_foreseen_of_what_is_not_known(shelf: Any, terms: dict[str, Any]) -> None:
    """Without a frame that was taught, and the folder that comes next, no world is built."""
    one, _ = shelf
    one.expect({"base": 1, **terms})
    assert one._foreseen is None


def test_without_word_of_mounts_nothing_is_built_ahead(shelf: Any) -> None:
    """Where /proc does not tell of them, a world could be an old one."""
    one, _ = shelf
    one.mounts = -1
    one.expect({"base": 1, "frame": 7, "next": TWO})
    assert one._foreseen is None


def test_frames_are_forgotten_by_both_ends_alike() -> None:
    """A launcher that serves for weeks keeps the last ones, and no number stands for two of them."""
    one = Stock(-1, select.poll())
    taught = Taught()
    numbers = []
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        for turn in range(200):
            words = json.dumps({"cwd": turn})
            assert taught.frame(ours, words) is None, "it came once"
            number = taught.frame(ours, words)
            assert number is not None
            assert taught.frame(ours, words) == number
            numbers.append(number)
            message, descriptors, _, _ = socket.recv_fds(theirs, 4096, 2)
            one.learn(message, descriptors[0])
    assert len(set(numbers)) == 200
    assert set(one._frames) == set(taught._frames.values()) == set(numbers[-64:])
    assert one._frames[numbers[-1]] == {"cwd": 199}
    os.close(one.mounts)


def test_a_frame_holds_nothing_of_one_run() -> None:
    """Neither its arguments nor its environment: the next run's init has it in its memory."""
    plan = {"argv": ["x"], "env": {"TOKEN": "secret"}, "frame": {"home": ""}, "scratch": ["/s", 1, 2]}
    frame, words = written(plan)
    assert frame == '{"home": ""}'
    assert json.loads(words) == plan
    for marked in ({"told": "00"}, {"traced": True}):
        assert written({**plan, **marked})[0] is None, "a traced run has a world of its own"
    assert written({"argv": []}) == (None, b'{"argv": []}')


@pytest.mark.parametrize("other", [{"frame": {"cwd": 1}}, {"scratch": TWO}, {"traced": True}])
def test_a_leader_in_a_world_takes_no_other_plan(other: dict[str, Any]) -> None:
    """What the launcher knows by numbers, the leader compares word by word."""
    one = object.__new__(Init)
    one._foreseen = Foreseen(7, FRAME, ONE)
    with pytest.raises(StepError) as failed:
        one.lead({"frame": FRAME, "scratch": ONE, **other}, [], 0)
    assert isinstance(failed.value.problem, landlock.ChangedError)


def test_the_scratch_folder_is_put_where_it_belongs() -> None:
    """An empty path stands for it in entries, rules and as the home; the rest is as it was."""
    frame = {
        "home": "",
        "user": "u",
        "entries": [["/a", "ro", 1, 2], ["", "rw", 0, 0]],
        "rules": [["", 7, 0, 0], ["/b", 7, 1, 3]],
    }
    assert world.filled(frame, ONE) == {
        "home": "/runs/1",
        "user": "u",
        "entries": [["/a", "ro", 1, 2], ["/runs/1", "rw", 5, 1]],
        "rules": [["/runs/1", 7, 5, 1], ["/b", 7, 1, 3]],
    }
    assert world.filled({**frame, "home": "/h"}, ONE)["home"] == "/h"
    assert world.filled(frame, None) is frame


def test_the_number_of_a_dropped_spare_is_not_taken_for_a_runs(shelf: Any) -> None:
    """In one round the kernel speaks of mounts and of a spare, and a request comes whose control socket gets its number.

    Nothing can be read from that yet: to wait for it would stop the clocks of every run.
    """
    stock_, put = shelf
    world_ = put(1, Foreseen(7, FRAME, ONE))
    number = world_.fileno()
    stock_.mounts = 90_000
    one = object.__new__(Launcher)
    one._stock, one._runs, one._worlds = stock_, {}, []
    one._unswept, one._spot, one._stocking, one._deaths, one._wake = False, 0, None, set(), 90_001
    one._socket = SimpleNamespace(fileno=lambda: 90_002)  # type: ignore[assignment]
    happened = [(90_000, select.POLLPRI), (90_002, select.POLLIN), (number, select.POLLIN)]
    one._poll = SimpleNamespace(poll=lambda _: happened)  # type: ignore[assignment]
    heard: list[object] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Launcher, "_hear_owner", lambda _, run: heard.append(run))
        patch.setattr(Launcher, "_advance", lambda _: None)
        patch.setattr(Launcher, "_accept", lambda one: one._runs.update({number: "a run"}) or True)
        assert one._step()
    assert world_.dropped
    assert not heard


@pytest.mark.parametrize("alone", [True, False])
def test_mounts_are_held_for_a_run_that_is_alone(*, alone: bool) -> None:
    """Of several each takes down its own at its end: they would wait for the launcher's one thread."""

    def run() -> Any:
        one = SimpleNamespace(held=True)
        one.let_go = lambda: setattr(one, "held", False)
        return one

    one = object.__new__(Launcher)
    new, other = run(), run()
    one._runs = {} if alone else {3: other}
    one._hold(new)
    assert (new.held, other.held) == ((True, True) if alone else (False, False))


@pytest.mark.parametrize(
    ("hurried", "runs", "worlds"), [(False, 0, True), (False, 1, True), (True, 0, False), (False, 2, False)]
)
def test_worlds_are_built_when_there_is_time_for_it(*, hurried: bool, runs: int, worlds: bool) -> None:
    """Run upon run, or several at once, the next one comes before its world: each would be built in vain."""
    asked: list[bool] = []
    one = object.__new__(Launcher)
    one._stock = SimpleNamespace(restock=lambda *, worlds: asked.append(worlds))  # type: ignore[assignment]
    one._hurried, one._runs, one._worlds = hurried, dict.fromkeys(range(runs)), []  # type: ignore[assignment]
    one._restock()
    assert asked == [worlds]


def test_the_mounts_of_a_run_are_held_until_there_is_time(arena: Arena) -> None:
    """They are taken down when nothing is under way, and none is left of runs that are over."""
    arena.script("pass\n")

    def held(pid: int) -> int:
        with contextlib.suppress(FileNotFoundError):  # it closes one meanwhile
            return sum(
                str(entry.readlink()).startswith("mnt:") for entry in Path(f"/proc/{pid}/fd").iterdir()
            )
        return -1

    with arena.runner("level-2") as runner:
        for _ in range(5):
            assert runner.run("demo", timeout=60).ok
            time.sleep(SETTLED)
        pid = launcher_pid(runner)
        assert eventually(lambda: held(pid) == len(spare_pids(runner)) == 2), "those of the two that wait"
        assert not scratches(runner)
    arena.assert_clean()
