"""The SQLite file in trouble: other people's, damaged, full, locked, read-only. People read why, and nothing is lost."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
import time
from typing import TYPE_CHECKING

import pytest
from talking import calls, one_waiting, talk

from skillrun.conversation import sqlite
from skillrun.conversation.conversation import Progress
from skillrun.conversation.entry import Entry, State
from skillrun.conversation.messages import Said
from skillrun.conversation.sqlite import SqliteStore
from skillrun.conversation.store import StoreError
from skillrun.errors import UsageError
from skillrun.tools.outcome import ToolCall
from skillrun.tools.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROOT = os.geteuid() == 0


class Work(Tool):
    """Does something."""

    done: int = 0

    def execute(self) -> str:
        """Count."""
        type(self).done += 1
        return "worked"


def filled(file: Path) -> None:
    """Write a conversation."""
    store = SqliteStore(file)
    store.append("a", 0, Said("hello"), [Entry("a", 0, 0, ToolCall("work", {}))])
    store.close()


def said(file: Path) -> str:
    """Return what people read about a store that can't be used."""
    with pytest.raises(StoreError) as found:
        SqliteStore(file).entries()
    assert str(file) in str(found.value)
    return str(found.value)


def test_the_file_and_its_folder_are_for_their_owner_alone(file: Path) -> None:
    """Folder 0700, file 0600, also what SQLite puts beside it; a file that others could read is closed to them."""
    filled(file)
    store = SqliteStore(file)
    store.append("b", 0, Said("x"))
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert {one.stat().st_mode & 0o777 for one in file.parent.iterdir()} == {0o600}
    store.close()
    file.chmod(0o644)
    SqliteStore(file).close()
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_newer_skillruns_store_is_left_alone(file: Path) -> None:
    """A higher version is refused, and the file has not a byte changed."""
    filled(file)
    database = sqlite3.connect(file)
    database.execute(f"PRAGMA user_version = {sqlite.VERSION + 1}")
    database.close()
    before = file.read_bytes()
    assert "newer skillrun" in said(file)
    assert file.read_bytes() == before


def test_another_programs_database_is_left_alone(file: Path) -> None:
    """A database of somebody else is not written into."""
    file.parent.mkdir(mode=0o700)
    database = sqlite3.connect(file)
    database.execute("CREATE TABLE theirs (x)")
    database.commit()
    database.close()
    before = file.read_bytes()
    assert "some other program's" in said(file)
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"this is no database, and longer than a header of one " * 40,
        lambda data: data[: len(data) // 2],
        lambda data: data[:100] + b"\xff" * (len(data) - 100),
    ],
    ids=["garbage", "truncated", "overwritten"],
)
def test_a_damaged_file_is_said_to_be(file: Path, damage: Callable[[bytes], bytes]) -> None:
    """Garbage, half a file, pages of noise: one error that names the file and what to do, no traceback of SQLite's."""
    filled(file)
    file.write_bytes(damage(file.read_bytes()))
    told = said(file)
    assert "can't be used" in told


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE call SET data = '{'",
        "UPDATE call SET data = '{}'",
        "UPDATE call SET data = '[]'",
        "UPDATE call SET state = 'asleep'",
        "UPDATE call SET call = 'null'",
    ],
)
def test_a_row_that_nothing_of_ours_wrote(file: Path, change: str) -> None:
    """A row that can't be read is an error for people as well."""
    filled(file)
    database = sqlite3.connect(file)
    database.execute(change)
    database.commit()
    database.close()
    assert "a row of it can't be read" in said(file)


def test_a_message_that_nothing_of_ours_wrote(file: Path) -> None:
    """The same for messages."""
    filled(file)
    database = sqlite3.connect(file)
    database.execute("UPDATE message SET data = '{\"calls\": 1}'")
    database.commit()
    database.close()
    with pytest.raises(StoreError, match="a row of it"):
        SqliteStore(file).messages("a")


def test_a_link_is_not_followed(file: Path, tmp_path: Path) -> None:
    """A link in the place of the file, or a second name of it: refused, and the target is as it was."""
    target = tmp_path / "target"
    target.write_bytes(b"")
    file.parent.mkdir(mode=0o700)
    file.symlink_to(target)
    assert "no file of this user alone" in said(file)
    file.unlink()
    os.link(target, file)
    assert "no file of this user alone" in said(file)
    assert target.read_bytes() == b""
    file.unlink()
    os.mkfifo(file)
    assert "no file of this user alone" in said(file)


def test_a_folder_of_others_or_for_others(file: Path) -> None:
    """A folder that a group or everybody may write to, a link to one, or another user's: refused."""
    file.parent.mkdir(mode=0o700)
    for mode in (0o770, 0o707):
        file.parent.chmod(mode)
        assert "can be written by others" in said(file)
    file.parent.chmod(0o700)
    if ROOT:
        os.chown(file.parent, 12345, 12345)
        assert "no folder of this user" in said(file)
        os.chown(file.parent, 0, 0)
    shutil.move(file.parent, file.parent.parent / "real")
    file.parent.symlink_to("real")
    assert "no folder of this user" in said(file)


def test_a_read_only_folder(file: Path) -> None:
    """A folder that an ordinary user can't write in: an error, and nothing is made."""
    file.parent.mkdir(mode=0o500)
    if ROOT:
        os.chown(file.parent, 12345, 12345)
        for one in (file.parent.parent, *file.parent.parent.parents[:-2]):
            one.chmod(one.stat().st_mode | 0o055)
        os.seteuid(12345)
    try:
        assert "ermission denied" in said(file)
    finally:
        if ROOT:
            os.seteuid(0)
    assert list(file.parent.iterdir()) == []


def test_a_full_disk_loses_nothing(file: Path) -> None:
    """The disk is full when a result is to be written: an error; the work is not made again, and its result comes later."""
    store = SqliteStore(file)
    Work.done = 0
    conversation = talk([Work], [calls(("work", {})), "over"], store=store)
    conversation.say("go")
    conversation.step()
    database = store._database()
    real = store.swap

    def full(old: Entry, new: Entry) -> Entry | None:
        if new.state is State.ANSWERED:
            pages = database.execute("PRAGMA page_count").fetchone()[0]
            database.execute(f"PRAGMA max_page_count = {pages}")
            grown = {"text": "x" * 200_000, "is_error": False}
            return real(
                old, Entry(**{**{k: getattr(new, k) for k in new.__dataclass_fields__}, "outcome": grown})
            )
        return real(old, new)

    store.swap = full  # type: ignore[method-assign]
    with pytest.raises(StoreError, match="full"):
        conversation.complete()
    with pytest.raises(StoreError, match="full"):
        store.append("other", 0, Said("y" * 200_000))
    assert not database.in_transaction
    del store.swap  # type: ignore[method-assign]
    database.execute("PRAGMA max_page_count = 100000")
    assert one_waiting(conversation).state is State.RUNNING
    assert conversation.complete().progress is Progress.DONE
    (entry,) = store.entries("talk")
    assert entry.outcome is not None
    assert entry.outcome["text"] == "worked"
    assert Work.done == 1
    assert store.problems() == []


@pytest.mark.parametrize(("seconds", "busy"), [(1.5, 0.3), pytest.param(12, 10.0, marks=pytest.mark.slow)])
def test_a_file_that_is_locked_for_long_is_waited_for(
    file: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, busy: float
) -> None:
    """Another program holds the file for longer than SQLite waits by itself: the write comes, once."""
    monkeypatch.setattr(sqlite, "_BUSY", busy)
    monkeypatch.setattr(sqlite, "_TRIES", 6)
    filled(file)
    store = SqliteStore(file)
    holder = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    holder.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(seconds, lambda: holder.execute("COMMIT"))
    timer.start()
    began = time.monotonic()
    assert store.append("b", 0, Said("x"))
    assert time.monotonic() - began >= seconds - 0.2
    timer.join()
    holder.close()
    assert len(store.messages("b")) == 1


def test_a_file_that_stays_locked_is_an_error(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At some point it is said that the file is locked, and later the store works again."""
    monkeypatch.setattr(sqlite, "_BUSY", 0.05)
    filled(file)
    store = SqliteStore(file)
    holder = sqlite3.connect(file, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="locked"):
        store.append("b", 0, Said("x"))
    holder.execute("COMMIT")
    holder.close()
    assert store.append("b", 0, Said("x"))


@pytest.mark.parametrize("name", ["..", "../..", "/etc", "", "a/b", ".", "x" * 65, "a\n"])
def test_no_name_leads_out_of_the_folder(file: Path, name: str) -> None:
    """To forget a conversation with a name like a path removes nothing, least of all the folder above."""
    filled(file)
    (file.parent / "conversations-files").mkdir()
    precious = file.parent.parent / "precious"
    precious.write_text("x")
    store = SqliteStore(file)
    with pytest.raises(UsageError, match="can't be the name"):
        store.remove(name)
    assert precious.exists()
    assert file.exists()
    assert store.conversations() == ["a"]


def test_to_forget_a_conversation_takes_its_files_and_no_others(file: Path) -> None:
    """Messages, calls and files of one are gone, those of the other are there; to forget it again says that it is not there."""
    filled(file)
    store = SqliteStore(file)
    store.append("b", 0, Said("x"))
    for name in "ab":
        folder = store.folder(name)
        folder.mkdir(parents=True)
        (folder / "kept.txt").write_text("x")
    assert store.remove("a")
    assert not store.remove("a")
    assert store.entries("a") == []
    assert store.messages("a") == []
    assert not store.folder("a").exists()
    assert (store.folder("b") / "kept.txt").exists()


def test_many_open_a_new_file_at_once(file: Path) -> None:
    """Eight threads with stores of their own begin on a file that is not there yet: all of them write."""
    wrong: list[BaseException] = []

    def begin(number: int) -> None:
        try:
            store = SqliteStore(file)
            assert store.append(f"c{number}", 0, Said("x"))
            store.close()
        except BaseException as problem:  # noqa: BLE001 - told below
            wrong.append(problem)

    threads = [threading.Thread(target=begin, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(SqliteStore(file).conversations()) == 8
