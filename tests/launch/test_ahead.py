"""What is made ahead of a run is ready for it, in nobody's way, and never outlives the runner."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import socket
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from arena import MODES, eventually, launcher_pid, scratches, set_grace, spare_pids, state

import skillrun.launch.scratches
from skillrun import Call
from skillrun.confine import launcher as module
from skillrun.confine import spare
from skillrun.confine.launcher import Launcher
from skillrun.confine.stock import Stock

if TYPE_CHECKING:
    from collections.abc import Callable

    from arena import Arena

    from skillrun import Runner

HOME = "import os\nprint(os.environ['HOME'], os.listdir(os.environ['HOME']))\n"


def home(runner: Runner) -> Path:
    """Run the script and return its scratch folder, which held nothing but the output folder."""
    result = runner.run("demo", timeout=60)
    assert result.ok, result.error
    folder, held = result.stdout.text.split(maxsplit=1)
    assert held == "['output']\n"
    return Path(folder)


@pytest.mark.parametrize("mode", MODES)
def test_a_run_takes_the_folder_that_was_made_for_it(arena: Arena, mode: str) -> None:
    """Two folders lie ready during and after a run, private and empty; the next run has the first, which goes with it."""
    arena.script(HOME)
    with arena.runner(mode) as runner:
        first = home(runner)
        ahead, after = runner._scratches.ahead
        assert ahead != first
        assert not first.exists()
        assert ahead.stat().st_mode & 0o777 == 0o700
        assert not scratches(runner)
        assert home(runner) == ahead
        assert not ahead.exists()
        assert runner._scratches.ahead[0] == after
        assert home(runner) == after
    arena.assert_clean()


def test_a_folder_that_a_cleaner_has_removed_is_made_anew(arena: Arena) -> None:
    """Who has not run anything for days finds the temporary folder swept; the next run does not notice."""
    arena.script(HOME)
    with arena.runner() as runner:
        home(runner)
        ahead = runner._scratches.ahead[0]
        shutil.rmtree(ahead)
        assert home(runner) != ahead
        ahead = runner._scratches.ahead[0]
        (ahead / "output").rmdir()
        assert home(runner) != ahead
    arena.assert_clean()


def test_a_folder_goes_with_its_launcher(arena: Arena) -> None:
    """The next launcher's runs are made folders in its own."""
    arena.script(HOME)
    with arena.runner() as runner:
        home(runner)
        ahead = runner._scratches.ahead[0]
        os.kill(launcher_pid(runner), signal.SIGKILL)
        assert eventually(lambda: not ahead.exists())
        assert home(runner).parent != ahead.parent
        assert not ahead.exists()
    arena.assert_clean()


def test_many_at_once_have_two_folders_ahead(arena: Arena) -> None:
    """However many runs are under way, two folders wait."""
    arena.script(HOME)
    with arena.runner(at_once=8) as runner:
        replies = runner.run_many([Call("demo", timeout=60)] * 24, limit=8)
        assert all(reply.result is not None and reply.result.ok for reply in replies)
        homes = [reply.result.stdout.text.split()[0] for reply in replies if reply.result is not None]
        assert len(set(homes)) == len(homes)
        assert len(runner._scratches.ahead) == 2
        assert not scratches(runner)
    arena.assert_clean()


def test_no_room_for_a_folder_ahead_is_the_next_runs_error(
    arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run whose own folder was made ends as if nothing were; the next one says what is wrong."""
    arena.script(HOME)
    real = skillrun.launch.scratches.make_scratch
    made = []

    def make(root: Path) -> Path:
        if len(made) == 1:
            raise OSError(28, "No space left on device")
        made.append(real(root))
        return made[0]

    monkeypatch.setattr(skillrun.launch.scratches, "make_scratch", make)
    with arena.runner() as runner:
        home(runner)
        with pytest.raises(skillrun.SkillrunError, match="No space left"):
            runner.run("demo")
    arena.assert_clean()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("problem", [KeyboardInterrupt, RuntimeError])
def test_an_interrupt_while_a_folder_is_made_ends_the_run(
    arena: Arena, monkeypatch: pytest.MonkeyPatch, mode: str, problem: type[BaseException]
) -> None:
    """The script is asked to end, and it is raised when nothing of the run is left, as everywhere else."""
    set_grace(monkeypatch, 5)
    arena.script(
        "import signal, sys, time\n"
        "def asked(*_):\n    open('out/asked', 'w').close()\n    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, asked)\nopen('out/started', 'w').close()\ntime.sleep(60)\n"
    )

    def interrupted(_: object) -> None:
        assert eventually((arena.out / "started").exists)
        raise problem

    with arena.runner(mode) as runner:
        monkeypatch.setattr(type(runner._scratches), "make_ahead", interrupted)
        with pytest.raises(problem):
            runner.run("demo", timeout=60)
        assert (arena.out / "asked").exists()
        arena.assert_dead()
        assert not scratches(runner)
    arena.assert_clean()


def test_a_forked_copy_leaves_the_folder_alone(arena: Arena) -> None:
    """It was made for its parent, which may be using it: the copy has a launcher and folders of its own."""
    arena.script(HOME)
    with arena.runner() as runner:
        home(runner)
        ahead = runner._scratches.ahead[0]
        pid = os.fork()
        if pid == 0:
            with contextlib.suppress(BaseException):
                own = home(runner)
                runner.close()
                os._exit(own.parent == ahead.parent)
            os._exit(2)
        assert os.waitpid(pid, 0)[1] == 0
        assert ahead.exists()
        assert home(runner) == ahead
    arena.assert_clean()


def test_a_folder_that_came_while_its_place_was_removed_goes_with_it(arena: Arena) -> None:
    """The last removal may have been in the middle when it was made; whoever made it takes all of it away."""
    arena.script(HOME)
    runner = arena.runner()
    home(runner)
    root = runner._scratches._furnished
    assert root is not None
    runner._scratches._ahead.clear()
    runner.close()
    assert not root.exists()
    (root / "runs").mkdir(parents=True)
    runner._scratches.make_ahead()
    assert not root.exists()
    assert not runner._scratches.ahead
    arena.assert_clean()


def plant_file(folder: Path) -> None:
    """Leave what a shell reads."""
    (folder / ".bashrc").write_text("evil")


def plant_output(folder: Path) -> None:
    """Leave what would be taken for the run's own output."""
    (folder / "output" / "report").write_text("evil")


def plant_and_take_back(folder: Path) -> None:
    """Leave nothing but the time."""
    time.sleep(0.02)
    (folder / "x").touch()
    (folder / "x").unlink()


def open_it(folder: Path) -> None:
    """Let everybody in."""
    folder.chmod(0o777)


def link_output(folder: Path) -> None:
    """Have the output go elsewhere."""
    (folder / "output").rmdir()
    (folder / "output").symlink_to("/etc")


def link_home(folder: Path) -> None:
    """Have everything go elsewhere."""
    folder.rename(folder.with_name("moved"))
    folder.symlink_to("moved")


def replace_it(folder: Path) -> None:
    """Put another folder in its place."""
    (folder / "output").rmdir()
    folder.rmdir()
    folder.mkdir(0o700)
    (folder / "output").mkdir(0o700)


@pytest.mark.parametrize(
    "plant", [plant_file, plant_output, plant_and_take_back, open_it, link_output, link_home, replace_it]
)
def test_a_folder_that_somebody_has_been_in_is_no_runs(arena: Arena, plant: Callable[[Path], None]) -> None:
    """An unconfined run knows where the folder of the next one lies: that one gets another."""
    arena.script(HOME)
    with arena.runner() as runner:
        home(runner)
        ahead = runner._scratches.ahead[0]
        plant(ahead)
        result = runner.run("demo", timeout=60)
        assert result.ok
        assert result.stdout.text.split(maxsplit=1)[1] == "['output']\n"
        assert result.stdout.text.split()[0] != str(ahead)
        assert not ahead.exists() or plant is link_home
    arena.assert_clean()


def test_making_a_folder_ahead_waits_for_nobody(arena: Arena) -> None:
    """Neither for the lock of the launcher, which is held while another run is buried, nor for another thread."""
    arena.script(HOME)
    with arena.runner() as runner:
        home(runner)
        scratches_ = runner._scratches
        scratches_._ahead.clear()
        with runner.launcher._lock:  # type: ignore[union-attr]
            scratches_.make_ahead()
        assert len(scratches_.ahead) == 2
        scratches_._ahead.clear()
        with scratches_._making:
            scratches_.make_ahead()
        assert len(scratches_.ahead) == 0
        scratches_.make_ahead()
        assert len(scratches_.ahead) == 2


def test_nothing_is_made_ahead_when_the_runner_is_being_closed(
    arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder made while the launcher's is removed would be in nobody's list: it would stay for ever."""
    arena.script("import time; time.sleep(30)")
    runner = arena.runner()
    reached, closed = threading.Event(), threading.Event()
    real = type(runner._scratches).make_ahead

    def late(scratches: object) -> None:
        reached.set()
        assert closed.wait(20)
        real(scratches)  # type: ignore[arg-type]

    monkeypatch.setattr(type(runner._scratches), "make_ahead", late)
    handle = runner.start(Call("demo", timeout=20))
    assert reached.wait(20)
    runner.close()
    closed.set()
    assert not handle.wait(20).ok
    arena.assert_clean()


@pytest.mark.parametrize("mode", ["level-1", "level-2"])
def test_a_spare_comes_when_a_run_goes_on_and_when_it_is_over(arena: Arena, mode: str) -> None:
    """A run has not to wait for its leader to be forked, whether the one before it was short or goes on."""
    arena.script("import sys, time; time.sleep(float(sys.argv[1]))")
    with arena.runner(mode) as runner:
        assert runner.run("demo", arguments=["0"], timeout=60).ok
        assert eventually(lambda: len(spare_pids(runner)) == 1)
        (waiting,) = spare_pids(runner)
        time.sleep(10 * module._SETTLED)  # right upon the first run, no world would be built for a third
        handle = runner.start(Call("demo", arguments=("30",), timeout=60))
        more = 2 if mode == "level-2" else 1  # the second run of a kind has a world built for the third
        assert eventually(lambda: handle.pid is not None and len(spare_pids(runner)) == 1 + more)
        assert waiting in spare_pids(runner)  # it has become the leader
        handle.cancel()
        handle.wait(20)
        assert eventually(lambda: len(spare_pids(runner)) == more)
    arena.assert_clean()


def test_a_spare_of_level_1_waits_behind_its_filter(arena: Arena) -> None:
    """What needs no plan is done before one comes: the filter is loaded, and no right can be gained."""
    arena.script("pass")
    with arena.runner("level-1") as runner:
        assert runner.run("demo", timeout=60).ok
        assert eventually(lambda: len(spare_pids(runner)) == 1)
        (waiting,) = spare_pids(runner)
        assert eventually(lambda: state(waiting) == "S")
        words = Path(f"/proc/{waiting}/status").read_text().split()
        assert words[words.index("Seccomp:") + 1] == "2"
        assert words[words.index("NoNewPrivs:") + 1] == "1"
        assert words[words.index("CapEff:") + 1] == "0" * 16
    arena.assert_clean()


def waiting(ours: socket.socket) -> spare.Spare:
    """Give a spare that is nothing but the launcher's end of its socket."""
    one = object.__new__(spare.Spare)
    one._socket, one.ready, one.world, one.death = ours, None, None, None
    return one


@pytest.mark.parametrize(
    ("word", "usable"), [(spare._READY, True), (spare._SPOILED, False), (b"", False), (None, True)]
)
def test_a_spare_is_used_when_it_is_prepared(word: bytes | None, *, usable: bool) -> None:
    """One that could not be, or is dead, is not; one that takes its time is, and holds up the launcher for a moment only."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    one = waiting(ours)
    with ours, theirs:
        if word:
            spare._say(theirs, word)
        elif word is not None:
            theirs.close()
        start = time.monotonic()
        assert one.usable() is usable
        assert time.monotonic() - start < 5


def test_a_spare_that_speaks_late_hears_its_plan() -> None:
    """The launcher may have sent the plan and closed its end, before the word came or without having read it."""
    for late in (False, True):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        one = waiting(ours)
        with theirs:
            if not late:
                spare._say(theirs, spare._READY)
            one.give([0, 1])
            if late:
                spare._say(theirs, spare._READY)
            words, received, _, _ = spare._hear(theirs)
        assert (words, len(received)) == (b"plan", 2)
        for descriptor in received:
            os.close(descriptor)


def test_a_spare_that_speaks_too_late_goes_on() -> None:
    """Nobody hears the word any more, and what went wrong is told to the run: neither SIGPIPE nor EPIPE may end it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.close()
    with theirs:
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            with contextlib.suppress(OSError):
                spare._say(theirs, spare._SPOILED)
                os._exit(0)
            os._exit(1)
        assert os.waitpid(pid, 0)[1] == 0


@pytest.mark.parametrize(("word", "usable"), [(spare._READY, True), (spare._SPOILED, False)])
def test_a_spare_that_is_being_prepared_is_waited_for(word: bytes, *, usable: bool) -> None:
    """A run that comes while a spare is on its way is not given one that will be spoiled a millisecond later."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    one = waiting(ours)
    with ours, theirs:
        later = threading.Timer(spare._MOMENT / 4000, spare._say, (theirs, word))
        later.start()
        assert one.usable() is usable
        later.join()


@pytest.mark.parametrize("mode", ["level-1", "level-2"])
def test_a_spare_that_dies_idle_is_not_replaced_before_the_next_run(arena: Arena, mode: str) -> None:
    """What killed it may kill every other one, and nobody asked for a run: the launcher rests."""
    arena.script("pass")
    with arena.runner(mode) as runner:
        assert runner.run("demo", timeout=60).ok
        assert eventually(lambda: len(spare_pids(runner)) == 1)
        os.kill(spare_pids(runner)[0], signal.SIGKILL)
        assert eventually(lambda: not spare_pids(runner))
        time.sleep(0.1)
        assert not spare_pids(runner)
        assert runner.run("demo", timeout=60).ok
        assert eventually(lambda: len(spare_pids(runner)) == (2 if mode == "level-2" else 1))
    arena.assert_clean()


def idle(monkeypatch: pytest.MonkeyPatch, *, runs: bool) -> tuple[Launcher, list[float]]:
    """Give a launcher on which nothing happens, and the list of times at which it made a spare."""
    made: list[float] = []
    one = object.__new__(Launcher)
    run = SimpleNamespace(reaped=False, tick=lambda _: None, next_wake=lambda: time.monotonic() + 60)
    one._poll = SimpleNamespace(poll=lambda wait: time.sleep((wait or 0) / 1000) or [])  # type: ignore[assignment]
    one._runs = {3: run} if runs else {}  # type: ignore[dict-item]
    one._unswept, one._spot, one._worlds, one._hurried = False, 0, [], False
    one._stock = Stock(-1, select.poll())
    one._stock._key, one._stock._bases = 1, {1: {}}
    monkeypatch.setattr(Launcher, "_settle", lambda *_: None)
    monkeypatch.setattr(Stock, "restock", lambda *_, **__: made.append(time.monotonic()))
    return one, made


def test_no_spare_is_forked_beside_a_run_that_has_just_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fork would take what the run needs; it comes when a short run would be over, and once."""
    one, made = idle(monkeypatch, runs=True)
    start = time.monotonic()
    one._stocking = start + module._SETTLED
    assert one._patience() is not None
    assert one._patience() <= module._SETTLED * 1000 + 1  # type: ignore[operator]
    while not made:
        assert time.monotonic() < start + 10
        one._step()
    assert made[0] - start >= module._SETTLED
    assert one._stocking is None
    one._poll = SimpleNamespace(poll=lambda _: [])  # type: ignore[assignment]
    one._step()
    assert len(made) == 1


def test_the_owner_hears_of_the_end_before_a_spare_is_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """With no run left the spare is made at once, after a breath in which the owner gets our processor."""
    one, made = idle(monkeypatch, runs=False)
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    one._stocking, one._hurried = time.monotonic() + 60, False
    one._step()
    assert slept[-1] == module._BREATH
    assert len(made) == 1
    one._stocking, one._hurried = time.monotonic() + 60, True
    slept.clear()
    one._step()
    assert module._BREATH not in slept, "who asks for run upon run needs the spare more"
    assert len(made) == 2


def test_a_spare_that_can_not_be_forked_is_not_tried_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """The launcher goes to sleep; the run that needs the spare is told why there is none."""
    made: list[float] = []
    real = Stock.restock
    one, _ = idle(monkeypatch, runs=False)

    def fail(*_: object) -> None:
        made.append(0.0)
        raise OSError(11, "no more processes")

    monkeypatch.setattr(Stock, "restock", real)
    monkeypatch.setattr(Stock, "new", fail)
    one._stocking, one._hurried = 0.0, False
    one._step()
    assert len(made) == 1
    assert one._patience() is None


def test_the_place_for_a_control_socket_is_kept_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A launcher that had no free descriptor keeps one as soon as there is one, so that it can answer the next request."""
    one, _ = idle(monkeypatch, runs=False)
    reading, writing = os.pipe()
    one._wake, one._spot, one._stocking = reading, -1, None
    one._step()
    assert one._spot >= 0
    for descriptor in (reading, writing, one._spot):
        os.close(descriptor)
