"""Claims: who is taken for dead and who is not, whatever clocks and process numbers do."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import psutil
import pytest
from talking import Machine, calls, one_waiting, talk

from skillrun.conversation.claims import Here, born
from skillrun.conversation.conversation import Progress
from skillrun.conversation.entry import State
from skillrun.conversation.sqlite import SqliteStore
from skillrun.conversation.transitions import claimed
from skillrun.tools.task import Task
from skillrun.tools.tool import Tool

if TYPE_CHECKING:
    from pathlib import Path

    from skillrun.conversation.conversation import Conversation
    from skillrun.conversation.entry import Entry
    from skillrun.conversation.store import Store


class GenerateReport(Tool):
    """Builds the quarterly report."""

    max_run_time = 2 * 3600.0

    def execute(self, quarter: str = "Q1") -> str:
        """Build it."""
        return f"report {quarter}"


def held(store: Store, machine: Machine) -> tuple[Conversation, Here, Entry]:
    """Return a call that a process of the machine is making, and the conversation as another process sees it."""
    owner = machine.process()
    conversation = talk([GenerateReport], [calls(("generate_report", {})), "over"], store=store, here=owner)
    conversation.say("go")
    conversation.step()
    entry = one_waiting(conversation)
    running = store.swap(entry, claimed(entry, owner.claim(GenerateReport.max_run_time), repeatable=False))
    assert running is not None
    other = talk(
        [GenerateReport], [calls(("generate_report", {})), "over"], store=store, here=machine.process()
    )
    return other, owner, running


def test_a_long_run_keeps_its_claim_for_its_own_time(store: Store, machine: Machine) -> None:
    """The seed's GenerateReport: nobody takes it over within its two hours, and after them it counts as crashed."""
    other, _, _ = held(store, machine)
    machine.clock.pass_(2 * 3600 - 1)
    assert other.complete().waiting[0].state is State.RUNNING
    machine.clock.pass_(2)
    assert other.complete().waiting[0].state is State.IN_DOUBT
    other.desk.retry("1.0")
    assert other.complete().text == "over"


@pytest.mark.parametrize("seconds", [-86_400, 86_400])
def test_a_clock_that_is_set_changes_no_claim(store: Store, machine: Machine, seconds: float) -> None:
    """Somebody sets the clock by a day: the call is neither taken over at once nor held for a day."""
    other, owner, _ = held(store, machine)
    machine.clock.wall += seconds
    assert other.complete().waiting[0].state is State.RUNNING
    machine.kill(owner)
    assert other.complete().waiting[0].state is State.IN_DOUBT


def test_a_dead_process_is_seen_at_once_and_a_reused_number_is_not_it(store: Store, machine: Machine) -> None:
    """The owner's process number belongs to another process by now: the call is taken over all the same."""
    other, owner, _ = held(store, machine)
    machine.kill(owner)
    machine.process(owner.pid())
    assert other.complete().waiting[0].state is State.IN_DOUBT


def test_after_a_boot_every_claim_is_void(store: Store, machine: Machine) -> None:
    """The machine was started anew, and a process of the same number was born at the same second: no claim holds."""
    other, owner, running = held(store, machine)
    assert not other.here.lapsed(running.claim)  # type: ignore[arg-type]
    after = replace(other.here, boot="second")
    assert after.lapsed(running.claim)  # type: ignore[arg-type]
    assert owner.pid() in machine.alive


def test_on_another_host_only_time_tells(store: Store, machine: Machine) -> None:
    """From elsewhere a process can't be seen: its claim holds until its time by the wall clock is over."""
    other, owner, running = held(store, machine)
    machine.kill(owner)
    claim = running.claim
    assert claim is not None
    there = replace(other.here, host="there", boot="other")
    assert not there.lapsed(claim)
    machine.clock.pass_(2 * 3600 + 1)
    assert there.lapsed(claim)


def test_a_late_result_is_dropped(store: Store, machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    """A process that was slower than its claim comes with a result: another one's counts, and it is logged."""
    slow = machine.process()

    class Slow(Tool):
        """Takes its time."""

        repeatable = True

        def execute(self) -> str:
            """Be taken over meanwhile."""
            if not made:
                made.append("slow")
                machine.clock.pass_(601)
                quick = talk([Slow], replies, store=store, here=machine.process())
                assert quick.complete().text == "over"
                return "too late"
            return "in time"

    made: list[str] = []
    replies = [calls(("slow", {})), "over"]
    conversation = talk([Slow], replies, store=store, here=slow)
    assert conversation.ask("go").progress is Progress.DONE
    (entry,) = store.entries("talk")
    assert entry.outcome is not None
    assert entry.outcome["text"] == "in time"
    assert "came too late" in caplog.text


def test_a_harmless_call_is_made_three_times_and_then_asked_about(store: Store, machine: Machine) -> None:
    """A call that kills every process that makes it does not do so for ever."""

    class Deadly(Tool):
        """Kills."""

        repeatable = True

        def execute(self) -> str:
            """Never come back."""
            raise AssertionError

    conversation = talk([Deadly], [calls(("deadly", {})), "over"], store=store, here=machine.process())
    conversation.say("go")
    conversation.step()
    for _ in range(3):
        entry = one_waiting(conversation)
        assert entry.state is State.READY
        owner = machine.process()
        store.swap(entry, claimed(entry, owner.claim(600), repeatable=True))
        machine.kill(owner)
        conversation._round._tidied(one_waiting(conversation))
    assert one_waiting(conversation).state is State.IN_DOUBT
    conversation.desk.give_up("1.0")
    assert conversation.complete().text == "over"
    assert "may have been done" in conversation.history()[2].outcomes[0].text  # type: ignore[union-attr]


def test_people_see_a_dead_process_before_anybody_carries_on(store: Store, machine: Machine) -> None:
    """The list of what waits for people names a call whose process has died, though no process has looked since."""
    other, owner, _ = held(store, machine)
    assert other.desk.waiting() == []
    machine.kill(owner)
    assert [one.state for one in other.desk.waiting()] == [State.IN_DOUBT]


def test_a_living_process_is_known_after_the_clock_was_set() -> None:
    """Psutil counts from a boot time that moves with the clock; a process that looks later still knows the owner."""
    program = (
        "import sys, psutil, psutil._pslinux as one\n"
        "was = one.boot_time() + 86400\n"
        "one.boot_time = lambda: was\n"
        "one.BOOT_TIME = was\n"
        "from skillrun.conversation.claims import Here, born\n"
        "from skillrun.conversation.entry import Claim\n"
        "here = Here()\n"
        "claim = Claim(here.host, here.boot, int(sys.argv[1]), float(sys.argv[2]), here.clock() + 99, 0)\n"
        "print(here.lapsed(claim), abs(psutil.Process(int(sys.argv[1])).create_time() - float(sys.argv[3])) > 1000)\n"
    )
    pid = os.getpid()
    words = [str(pid), str(born(pid)), str(psutil.Process(pid).create_time())]
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_the_dead_and_those_who_only_wait_to_be_reaped_are_gone() -> None:
    """A zombie has no result to bring; a number that is no process, or no number, is nobody."""
    child = subprocess.Popen(["/bin/true"])
    until = time.monotonic() + 10
    while born(child.pid) is not None:
        assert time.monotonic() < until
        time.sleep(0.01)
    child.wait()
    assert born(2**31 - 1) is None
    assert born(-1) is None
    assert born(os.getpid()) is not None


def test_a_container_with_the_same_name_is_another_host() -> None:
    """Processes of another namespace can't be seen, so they must not be taken for dead: their host is another one."""
    here = Here()
    if os.path.exists("/proc/self/ns/pid"):  # noqa: PTH110 - a link to nowhere
        assert os.readlink("/proc/self/ns/pid") in here.host  # noqa: PTH115
    other = replace(here.claim(60), host=here.host.replace("[", "[9"), pid=2**31 - 1)
    assert not here.lapsed(other)
    assert here.lapsed(replace(other, host=here.host))


def test_a_fork_with_an_open_store(file: Path) -> None:
    """A forked copy opens the file anew, writes, and ends as a program does; the parent's store is whole and goes on."""
    program = (
        "import os, sys, pathlib\n"
        "from skillrun.conversation.sqlite import SqliteStore\n"
        "from skillrun.conversation.messages import Said\n"
        "store = SqliteStore(pathlib.Path(sys.argv[1]))\n"
        "assert store.append('a', 0, Said('one'))\n"
        "import threading, time\n"
        "def hold():\n"  # another thread has the lock at the moment of the fork
        "    with store._lock: time.sleep(1)\n"
        "thread = threading.Thread(target=hold); thread.start(); time.sleep(0.2)\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    assert store.append('b', 0, Said('child'))\n"
        "    sys.exit(0)\n"
        "thread.join()\n"
        "assert os.waitpid(pid, 0)[1] == 0\n"
        "assert store.append('a', 1, Said('two'))\n"
        "assert store.problems() == [], store.problems()\n"
        "print(store.conversations(), len(store.messages('a')))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(file)], capture_output=True, text=True, timeout=20, check=False
    )
    assert done.stdout == "['a', 'b'] 2\n", done.stderr
    assert SqliteStore(file).problems() == []


def test_a_second_store_on_the_file_drops_no_lock(file: Path) -> None:
    """To open a file once more and close it would drop the locks this process has on it; the second store does not."""
    first = SqliteStore(file)
    first.problems()
    locks = _locks(file)
    assert locks
    second = SqliteStore(file)
    second.close()
    assert _locks(file) >= locks
    first.close()


def _locks(file: Path) -> int:
    """Return how many POSIX locks this process has on a file."""
    found = file.stat()
    named = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    with open("/proc/locks") as lines:  # noqa: PTH123
        return sum(f" {os.getpid()} {named} " in line for line in lines)


@pytest.mark.parametrize("looks", [False, True])
def test_a_resume_that_was_cut_off_is_in_doubt_unless_it_only_looks(
    store: Store, machine: Machine, *, looks: bool
) -> None:
    """Its process died in the middle: what it did may be done, so a person says whether it is carried on again."""
    owner, resumed, seen = machine.process(), [0], []

    class Transfer(Tool):
        """Sends the money once the bank is open."""

        def execute(self) -> Task:
            """Begin."""
            return Task(message="the bank is closed")

        def resume(self, task: Task) -> str:
            """Send it."""
            del task
            resumed[0] += 1
            if resumed[0] == 1:
                machine.kill(owner)
                seen.extend(conversation(machine.process()).complete().waiting)
            return "sent"

    Transfer.looks = looks

    def conversation(here: Here) -> Conversation:
        return talk([Transfer], [calls(("transfer", {})), "over"], store=store, here=here)

    conversation(owner).ask("send it")
    last = conversation(owner).complete()
    if looks:
        assert (resumed, seen) == ([2], [])
        return
    assert resumed == [1]
    assert [one.state for one in seen] == [State.IN_DOUBT]
    assert [one.state for one in last.waiting] == [State.IN_DOUBT]  # the late result of the dead was dropped
    after = conversation(machine.process())
    after.desk.retry("1.0")
    assert one_waiting(after).state is State.PAUSED  # carried on, not begun anew
    assert after.complete().text == "over"
    assert resumed == [2]
