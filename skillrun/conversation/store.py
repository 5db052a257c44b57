"""Store: where conversations are kept. One operation changes a call: put the new entry where the old one still is."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Protocol

from skillrun.errors import SkillrunError, UsageError
from skillrun.problem import error

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from skillrun.conversation.entry import Entry
    from skillrun.conversation.messages import Reply, Said

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class StoreError(SkillrunError):
    """The store can't be read or written."""


class Store(Protocol):
    """Keeps messages and the entries of their calls. For any number of threads."""

    shared: bool
    """Whether another process may change what is in it."""

    def append(
        self, conversation: str, after: int, message: Said | Reply, entries: Sequence[Entry] = ()
    ) -> bool:
        """Add a message and its calls behind the first `after` messages; False when there are more by now."""
        ...

    def messages(self, conversation: str) -> list[Said | Reply]:
        """Return the messages of a conversation in order; none for one that is not there."""
        ...

    def entries(self, conversation: str | None = None, *, open_only: bool = False) -> list[Entry]:
        """Return the calls of a conversation, of all without one, in order."""
        ...

    def swap(self, old: Entry, new: Entry) -> Entry | None:
        """Put `new` in the place of `old`, and return it with its version; None when `old` is not there any more."""
        ...

    def version(self, entry: Entry) -> int | None:
        """Return the version an entry has now; None when it is gone."""
        ...

    def conversations(self) -> list[str]:
        """Return the names of all conversations, the oldest first."""
        ...

    def remove(self, conversation: str) -> bool:
        """Forget a conversation with its files; False when it is not there."""
        ...

    def folder(self, conversation: str) -> Path | None:
        """Return the folder for files of a conversation, which may have to be made; None: there is none.

        Raises UsageError for what `checked_name` refuses.
        """
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


def checked_name(conversation: str) -> str:
    """Return the name of a conversation. UsageError for one that could be anything but a plain name."""
    if not _NAME.fullmatch(conversation):
        message = f"{conversation[:80]!r} can't be the name of a conversation"
        raise UsageError(
            error("conversation-name", message, help="use letters, digits, `-` and `_`, 64 at most")
        )
    return conversation


@dataclass(slots=True)
class MemoryStore:
    """Conversations of one process, gone with it."""

    shared: bool = False
    _messages: dict[str, list[Said | Reply]] = field(default_factory=dict)
    _entries: dict[tuple[str, int, int], Entry] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def append(
        self, conversation: str, after: int, message: Said | Reply, entries: Sequence[Entry] = ()
    ) -> bool:
        """Add a message and its calls behind the first `after` messages; False when there are more by now."""
        with self._lock:
            found = self._messages.setdefault(conversation, [])
            if len(found) != after:
                return False
            found.append(message)
            self._entries.update({(conversation, one.seq, one.position): one for one in entries})
            return True

    def messages(self, conversation: str) -> list[Said | Reply]:
        """Return the messages of a conversation."""
        with self._lock:
            return list(self._messages.get(conversation, ()))

    def entries(self, conversation: str | None = None, *, open_only: bool = False) -> list[Entry]:
        """Return calls in order."""
        with self._lock:
            found = sorted(self._entries.items(), key=lambda one: one[0][1:])
        return [
            one for (name, _, _), one in found if conversation in {None, name} and (one.open or not open_only)
        ]

    def swap(self, old: Entry, new: Entry) -> Entry | None:
        """Put an entry in another one's place."""
        key = (old.conversation, old.seq, old.position)
        with self._lock:
            found = self._entries.get(key)
            if found is None or found.version != old.version:
                return None
            made = replace(new, version=old.version + 1)
            self._entries[key] = made
            return made

    def version(self, entry: Entry) -> int | None:
        """Return the version an entry has now."""
        with self._lock:
            found = self._entries.get((entry.conversation, entry.seq, entry.position))
        return None if found is None else found.version

    def conversations(self) -> list[str]:
        """Return the names of all conversations."""
        with self._lock:
            return list(self._messages)

    def remove(self, conversation: str) -> bool:
        """Forget a conversation."""
        with self._lock:
            self._entries = {key: one for key, one in self._entries.items() if key[0] != conversation}
            return self._messages.pop(conversation, None) is not None

    def folder(self, conversation: str) -> Path | None:  # noqa: ARG002 - the one signature of all stores
        """Return None: nothing is written."""
        return None

    def close(self) -> None:
        """Do nothing."""
