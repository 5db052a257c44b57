"""Roots: folders that a client of the era of the handshake works in. They narrow the workspace and never widen it.

Deprecated since 2026-07-28 (SEP-2577), and still sent by clients; in the newer era nobody is asked for them.
"""

from __future__ import annotations

import os
import threading
import urllib.parse
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio.to_thread
import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from skillrun.errors import SkillrunError
from skillrun.mcp.approval import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp.server.context import ServerRequestContext

    from skillrun.mcp.offer import Offer

    Context = ServerRequestContext[Any, Any]

_PATIENCE: Final = 10.0  # seconds that a client gets to tell its roots
_MOST: Final = 16
"""Folders that are served at the same time beside the workspace: each has a runner of its own."""
_MOST_CLIENTS: Final = 10_000


class Roots:
    """Gives each client the offer of the folder that its roots leave of the workspace.

    `narrow` makes the offer of a folder; each is made once. What a client says is asked for once, and again when
    it says that it has changed.
    """

    def __init__(self, whole: Offer, narrow: Callable[[Path], Offer]) -> None:
        self.whole = whole
        self._narrow = narrow
        self._told: dict[str, Path] = {}
        self._changes = 0
        self._offers: dict[Path, Offer] = {}
        self._lock = threading.Lock()

    async def offer(self, ctx: Context) -> Offer:
        """Return the offer for one client. Raises RefusedError when its roots leave nothing, or can't be had."""
        capabilities = ctx.session.client_capabilities
        modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        if modern or capabilities is None or capabilities.roots is None:
            return self.whole
        client = session_of(ctx)
        folder = self._told.get(client)
        if folder is None:
            changes = self._changes
            folder = left_of(self.whole.runner.workspace, await self._ask(ctx))
            if self._changes != changes:  # told while we asked: what was answered may be old
                return await self.offer(ctx)
            if len(self._told) >= _MOST_CLIENTS:
                self._told.clear()
            self._told[client] = folder
        return await anyio.to_thread.run_sync(self._of, folder)

    def close(self) -> None:
        """Remove what the offers hold; their runners are their makers' to close."""
        for offer in (self.whole, *self._offers.values()):
            offer.close()

    def changed(self, ctx: Context) -> None:
        """Ask again before the next call: a client's roots are others now."""
        self._changes += 1
        self._told.pop(session_of(ctx), None)

    async def _ask(self, ctx: Context) -> list[str]:
        try:
            answer = await ctx.session.send_request(
                types.ListRootsRequest(),
                types.ListRootsResult,
                request_read_timeout_seconds=_PATIENCE,
                metadata=ServerMessageMetadata(related_request_id=ctx.request_id),
            )
        except (MCPError, ValueError):
            # A client that has roots and does not tell them is not taken for one that has none.
            raise RefusedError("this client did not tell its roots, so nothing is run for it") from None
        return [str(root.uri) for root in answer.roots]

    def _of(self, folder: Path) -> Offer:
        if folder == self.whole.runner.workspace:
            return self.whole
        with self._lock:
            found = self._offers.get(folder)
            if found is None:
                if len(self._offers) >= _MOST:
                    raise RefusedError("clients of too many folders are served already")
                try:
                    found = self._narrow(folder)
                except SkillrunError as wrong:
                    raise RefusedError("the roots of this client can't be worked in") from wrong
                if found.runner.workspace != folder:  # it became a link behind our look at it
                    raise RefusedError("the roots of this client can't be worked in")
                self._offers[folder] = found
            return found


def left_of(workspace: Path, uris: Sequence[str]) -> Path:
    """Return what roots leave of a workspace: the deepest folder in it that holds all those that lie in it.

    A root that is the workspace or above it takes nothing away; one outside counts for nothing. A client that has
    no root has no folder open, and takes nothing away either. Raises RefusedError when there are roots and none
    shares anything with the workspace.
    """
    if not uris:
        return workspace
    inside: list[Path] = []
    for uri in uris:
        try:
            parsed = urllib.parse.urlsplit(uri)
        except ValueError:
            continue
        path = urllib.parse.unquote(parsed.path)
        if parsed.scheme != "file" or parsed.netloc not in {"", "localhost"} or not path or "\0" in path:
            continue
        folder = Path(os.path.realpath(path))
        if folder == workspace or folder in workspace.parents:
            return workspace
        if workspace in folder.parents and os.path.isdir(folder):  # noqa: PTH112 - Path.is_dir raises for EACCES
            inside.append(folder)
    if not inside:
        raise RefusedError("the roots of this client share nothing with the workspace")
    return Path(os.path.commonpath(inside))


def session_of(ctx: Context) -> str:
    """Return what tells clients of a port apart; nothing on standard streams, where there is one."""
    headers = getattr(ctx.request, "headers", None)
    return str(headers.get("mcp-session-id", "")) if headers is not None else ""
