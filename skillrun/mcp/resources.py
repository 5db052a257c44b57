"""Resources: `resources/list`, `resources/read`, `skills/list` and `skills/get` over the library and the shelf."""

from __future__ import annotations

import base64
import threading
from typing import TYPE_CHECKING, Any, Final

import anyio.to_thread
import mcp_types as types
from mcp.shared.exceptions import MCPError

from skillrun.mcp.library import library, read
from skillrun.mcp.paging import page

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from skillrun.mcp.library import Volume
    from skillrun.mcp.offer import Offer, Sign
    from skillrun.mcp.shelf import Kept, Shelf

    Context = ServerRequestContext[Any, Any]

_FRESH: Final = {"ttlMs": 2_000, "cacheScope": "private"}


class GetSkillParams(types.RequestParams):
    """What `skills/get` takes."""

    uri: str


class Resources:
    """Handlers. The library is read anew only when the skills on disk have changed."""

    def __init__(self, offer: Offer, shelf: Shelf) -> None:
        self._offer = offer
        self._shelf = shelf
        self._lock = threading.Lock()
        self._sign: Sign | None = None
        self._volumes: tuple[Volume, ...] = ()

    async def list(
        self, _ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Answer `resources/list`: every file of every skill that is served."""
        volumes = await anyio.to_thread.run_sync(self._library)
        made = [_resource(volume, index) for volume in volumes for index in range(len(volume.files))]
        found, cursor = page(made, _uri, params.cursor if params is not None else None)
        return types.ListResourcesResult(resources=found, next_cursor=cursor)

    async def read(self, _ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        """Answer `resources/read`: a file of a skill, or what a result links to."""
        uri = str(params.uri)
        kept = self._shelf.get(uri) or await anyio.to_thread.run_sync(self._file, uri)
        if kept is None:
            raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})
        return types.ReadResourceResult(contents=[_contents(kept)])

    async def list_skills(self, _ctx: Context, params: types.PaginatedRequestParams) -> dict[str, Any]:
        """Answer `skills/list`."""
        volumes = await anyio.to_thread.run_sync(self._library)
        found, cursor = page(volumes, lambda volume: volume.uri, params.cursor)
        more = {} if cursor is None else {"nextCursor": cursor}
        return {"resultType": "complete", "skills": [one.entry for one in found], **more, **_FRESH}

    async def get_skill(self, _ctx: Context, params: GetSkillParams) -> dict[str, Any]:
        """Answer `skills/get`."""
        for volume in await anyio.to_thread.run_sync(self._library):
            if volume.uri == params.uri:
                return {"resultType": "complete", "skill": volume.entry, **_FRESH}
        raise MCPError(types.INVALID_PARAMS, "Unknown skill", {"uri": params.uri})

    def _file(self, uri: str) -> Kept | None:
        return read(self._library(), uri)

    def _library(self) -> tuple[Volume, ...]:
        offered = self._offer.now()
        with self._lock:
            if self._sign != offered.sign:
                self._volumes = library(offered.catalog)
                self._sign = offered.sign
            return self._volumes


def _uri(resource: types.Resource) -> str:
    return str(resource.uri)


def _resource(volume: Volume, index: int) -> types.Resource:
    file = volume.files[index]
    manifest = file.uri == volume.uri
    return types.Resource(
        uri=file.uri,
        name=volume.skill.name or file.path if manifest else file.path,
        description=volume.skill.description if manifest else None,
        mime_type=volume.media_type(file),
        size=file.size,
    )


def _contents(kept: Kept) -> types.TextResourceContents | types.BlobResourceContents:
    if kept.media_type.startswith("text/"):
        try:
            text = kept.data.decode()
        except UnicodeDecodeError:
            pass
        else:
            return types.TextResourceContents(uri=kept.uri, mime_type=kept.media_type, text=text)
    blob = base64.b64encode(kept.data).decode("ascii")
    return types.BlobResourceContents(uri=kept.uri, mime_type=kept.media_type, blob=blob)
