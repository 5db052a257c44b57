"""SQLite store: conversations that outlive the process, in one file that any number of processes may use at once.

Why not a library: a queue is not the need. What is needed is one row a call with compare-and-swap, that people look
at, and no dependency in the path that guards approvals (facts/agents B6, with what each candidate lost when killed).
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import sqlite3
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from skillrun.conversation.disk import private_file, private_folder, syncs_well
from skillrun.conversation.entry import Entry, State, from_data, to_data
from skillrun.conversation.messages import call_data, call_of
from skillrun.conversation.messages import from_data as message_of
from skillrun.conversation.messages import to_data as message_data
from skillrun.conversation.store import StoreError, checked_name
from skillrun.problem import error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from typing import TypeVar

    from skillrun.conversation.messages import Reply, Said

    T = TypeVar("T")

APPLICATION: Final = 0x736B6C72
"""SQLite's `application_id`: `sklr`."""
VERSION: Final = 1
"""SQLite's `user_version`; a file with a higher one is refused."""
_BUSY: Final = (
    10.0  # seconds that SQLite waits for a lock by itself; its handler is not fair (facts/agents B3)
)
_TRIES: Final = 4
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS message (
    conversation TEXT NOT NULL, seq INTEGER NOT NULL, data TEXT NOT NULL, PRIMARY KEY (conversation, seq));
CREATE TABLE IF NOT EXISTS call (
    conversation TEXT NOT NULL, seq INTEGER NOT NULL, position INTEGER NOT NULL, call TEXT NOT NULL,
    state TEXT NOT NULL, version INTEGER NOT NULL, attempts INTEGER NOT NULL, data TEXT NOT NULL,
    PRIMARY KEY (conversation, seq, position));
CREATE INDEX IF NOT EXISTS open_call ON call (conversation, seq, position) WHERE state <> 'answered';
"""
_COLUMNS: Final = "conversation, seq, position, call, state, version, attempts, data"


class SqliteStore:
    """A store in `path`, which is made, readable by its owner alone. Raises StoreError.

    It belongs to the operator's state folder: what lies there no script can reach. A forked copy of the process
    opens the file anew.
    """

    shared = True

    def __init__(self, path: Path) -> None:
        self.path = path
        self._held = (os.getpid(), threading.RLock())
        self._opened: tuple[int, sqlite3.Connection] | None = None
        self._abandoned: list[sqlite3.Connection] = []
        self._retried(lambda: None)

    def append(
        self, conversation: str, after: int, message: Said | Reply, entries: Sequence[Entry] = ()
    ) -> bool:
        """Add a message and its calls in one transaction."""
        rows = [
            (conversation, one.seq, one.position, _json(call_data(one.call)), *_changing(one))
            for one in entries
        ]
        data = _json(message_data(message))

        def work() -> bool:
            with self._transaction() as database:
                counted = "SELECT count(*) FROM message WHERE conversation = ?"
                if database.execute(counted, (conversation,)).fetchone()[0] != after:
                    return False
                database.execute("INSERT INTO message VALUES (?, ?, ?)", (conversation, after, data))
                database.executemany("INSERT INTO call VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
                return True

        return self._retried(work)

    def messages(self, conversation: str) -> list[Said | Reply]:
        """Return the messages of a conversation."""
        sought = "SELECT data FROM message WHERE conversation = ? ORDER BY seq"
        rows = self._fetched(sought, (conversation,))
        return self._read(lambda row: message_of(json.loads(row[0])), rows)

    def entries(self, conversation: str | None = None, *, open_only: bool = False) -> list[Entry]:
        """Return calls in order."""
        where = ["1 = 1"] + (["conversation = ?"] if conversation is not None else [])
        where += ["state <> 'answered'"] if open_only else []
        sought = (
            f"SELECT {_COLUMNS} FROM call WHERE {' AND '.join(where)} ORDER BY conversation, seq, position"  # noqa: S608 - words of ours
        )
        return self._read(_entry, self._fetched(sought, () if conversation is None else (conversation,)))

    def swap(self, old: Entry, new: Entry) -> Entry | None:
        """Put an entry in another one's place: one statement, one commit."""
        made = replace(new, version=old.version + 1)
        change = (
            "UPDATE call SET state = ?, version = ?, attempts = ?, data = ? "
            "WHERE conversation = ? AND seq = ? AND position = ? AND version = ?"
        )
        values = (*_changing(made), old.conversation, old.seq, old.position, old.version)
        changed = self._retried(lambda: self._database().execute(change, values).rowcount)
        return made if changed == 1 else None

    def version(self, entry: Entry) -> int | None:
        """Return the version an entry has now."""
        sought = "SELECT version FROM call WHERE conversation = ? AND seq = ? AND position = ?"
        rows = self._fetched(sought, (entry.conversation, entry.seq, entry.position))
        return rows[0][0] if rows else None

    def conversations(self) -> list[str]:
        """Return the names of all conversations."""
        return [
            name
            for (name,) in self._fetched("SELECT conversation FROM message WHERE seq = 0 ORDER BY rowid", ())
        ]

    def remove(self, conversation: str) -> bool:
        """Forget a conversation with its files."""

        def work() -> int:
            with self._transaction() as database:
                database.execute("DELETE FROM call WHERE conversation = ?", (conversation,))
                return database.execute(
                    "DELETE FROM message WHERE conversation = ?", (conversation,)
                ).rowcount

        folder = self.folder(conversation)
        gone = self._retried(work) > 0
        shutil.rmtree(folder, ignore_errors=True)
        return gone

    def folder(self, conversation: str) -> Path:
        """Return the folder for files of a conversation, beside the store. UsageError for no plain name."""
        return self.path.parent / f"{self.path.stem}-files" / checked_name(conversation)

    def problems(self) -> list[str]:
        """Return what SQLite finds wrong with the file; nothing when it is whole."""
        found = [row[0] for row in self._fetched("PRAGMA quick_check", ())]
        return [] if found == ["ok"] else found

    def close(self) -> None:
        """Close the file. A connection that a fork brought along is never closed: it is its parent's."""
        with self._lock:
            if self._opened is not None and self._opened[0] == os.getpid():
                with contextlib.suppress(sqlite3.Error):
                    self._opened[1].execute("PRAGMA wal_checkpoint(TRUNCATE)")
                self._opened[1].close()
            self._opened = None

    def _fetched(self, sought: str, values: tuple[Any, ...]) -> list[Any]:
        return self._retried(lambda: self._database().execute(sought, values).fetchall())

    def _read(self, read: Callable[[Sequence[Any]], T], rows: Sequence[Any]) -> list[T]:
        """Return what rows say. Raises StoreError for one that nothing of ours has written."""
        try:
            return [read(row) for row in rows]
        except (ValueError, TypeError, LookupError, AttributeError) as wrong:
            told = f"a row of it can't be read ({type(wrong).__name__}: {wrong})"
            raise self._error(told) from None

    @property
    def _lock(self) -> threading.RLock:
        """The lock of this process: a fork may have copied it while another thread held it."""
        if self._held[0] != os.getpid():
            self._held = (os.getpid(), threading.RLock())
        return self._held[1]

    def _retried(self, work: Callable[[], T]) -> T:
        """Do work on the open file; when it is locked for long, a few times more. Raises StoreError."""
        for left in reversed(range(_TRIES)):
            try:
                with self._lock:
                    self._database()
                    return work()
            except sqlite3.OperationalError as wrong:  # noqa: PERF203 - it sleeps between its rounds
                if not _locked(wrong) or not left:
                    raise self._error(wrong) from None
                time.sleep(random.uniform(0.05, 0.5))  # noqa: S311 - so that two who wait do not meet again
            except (sqlite3.Error, OSError, ValueError) as wrong:
                raise self._error(wrong) from None
        raise AssertionError  # pragma: no cover - the last try returns or raises

    def _database(self) -> sqlite3.Connection:
        opened = self._opened
        if opened is not None and opened[0] == os.getpid():
            return opened[1]
        if opened is not None:
            # SQLite's locks do not survive a fork, and closing an inherited connection drops its parent's (sqlite.org/howtocorrupt).
            self._abandoned.append(opened[1])
        database = self._open()
        self._opened = (os.getpid(), database)
        return database

    def _open(self) -> sqlite3.Connection:
        private_folder(self.path.parent)
        private_file(self.path)
        # No implicit transactions: one that reads and then writes fails at once when somebody else wrote (facts/agents B6).
        database = sqlite3.connect(self.path, timeout=_BUSY, isolation_level=None, check_same_thread=False)
        try:
            self._prepare(database)
        except BaseException:
            database.close()
            raise
        return database

    def _prepare(self, database: sqlite3.Connection) -> None:
        # The tables first: another process may make them, and what marks them, at this moment.
        tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        marked = database.execute("PRAGMA application_id").fetchone()[0]
        version = database.execute("PRAGMA user_version").fetchone()[0]
        if (tables and marked != APPLICATION) or version > VERSION:
            newer = (
                "it was written by a newer skillrun" if version > VERSION else "it is some other program's"
            )
            raise ValueError(newer)
        database.execute(f"PRAGMA journal_mode = {'WAL' if syncs_well(self.path) else 'TRUNCATE'}").fetchall()
        database.execute("PRAGMA synchronous = FULL")
        if not tables:
            database.executescript(
                f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}; COMMIT;"
            )

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        database = self._database()
        try:
            database.execute("BEGIN IMMEDIATE")
            yield database
            database.execute("COMMIT")
        except BaseException:
            if database.in_transaction:  # a full disk has ended it already
                database.execute("ROLLBACK")
            raise

    def _error(self, wrong: Exception | str) -> StoreError:
        message = f"the conversations in {self.path} can't be used: {wrong}"
        help_ = "`skillrun doctor` looks at the file; move it away to begin anew"
        return StoreError(error("conversation-store", message, help=help_))


def _locked(wrong: sqlite3.OperationalError) -> bool:
    """Whether somebody else holds the file; before Python 3.11 only the words say so."""
    code = getattr(wrong, "sqlite_errorcode", None)
    return "locked" in str(wrong) if code is None else (code & 0xFF) in {5, 6}  # SQLITE_BUSY, SQLITE_LOCKED


def _changing(entry: Entry) -> tuple[str, int, int, str]:
    return entry.state.value, entry.version, entry.attempts, _json(to_data(entry))


def _entry(row: Sequence[Any]) -> Entry:
    conversation, seq, position, call, state, version, attempts, data = row
    return Entry(
        conversation,
        seq,
        position,
        call_of(json.loads(call)),
        state=State(state),
        version=version,
        attempts=attempts,
        **from_data(json.loads(data)),
    )


def _json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=True, separators=(",", ":"))
