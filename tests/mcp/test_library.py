"""The Skills extension: what is listed, its digests, and what is never served."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError
from pydantic import ConfigDict
from test_service import ERAS, in_loop

from skillrun.mcp import library
from skillrun.mcp.resources import GetSkillParams

if TYPE_CHECKING:
    from mcp_world import World


class Answer(types.Result):
    """Any result of a method that the SDK does not know."""

    model_config = ConfigDict(extra="allow")


class ListSkills(types.Request[types.PaginatedRequestParams | None, str]):
    """`skills/list`."""

    method: str = "skills/list"
    params: types.PaginatedRequestParams | None = None


class GetSkill(types.Request[GetSkillParams, str]):
    """`skills/get`."""

    method: str = "skills/get"
    params: GetSkillParams


async def skills(client: Any) -> dict[str, Any]:
    """List the skills by their links."""
    found = await client.session.send_request(ListSkills(), Answer)
    return {one["uri"]: one for one in found.model_dump()["skills"]}


@pytest.mark.parametrize("era", ERAS)
@in_loop
async def test_skills_are_resources_with_digests(world: World, era: str) -> None:
    """Every file is listed with its digest and size, read back as it is, and the front matter is verbatim."""
    folder = world.skill("demo", front="timeout: 5\nmetadata:\n  a: [1, 'yes', no]\n", go="print(1)")
    (folder / "data").mkdir()
    (folder / "data" / "ü b.bin").write_bytes(b"\xff\x00")
    world.skill("other", go="print(2)")
    async with world.client(era) as client:
        if era == "auto":  # the handshake of the other era has no place for extensions
            assert client.session.server_capabilities.extensions == {library.EXTENSION: {}}
        found = await skills(client)
        assert list(found) == ["skill://demo/SKILL.md", "skill://other/SKILL.md"]
        entry = found["skill://demo/SKILL.md"]
        assert entry["frontmatter"] == {
            "name": "demo", "description": "The skill demo.", "timeout": 5, "metadata": {"a": [1, "yes", "no"]},
        }  # fmt: skip
        assert {one["uri"] for one in entry["resources"]} == {
            "skill://demo/SKILL.md", "skill://demo/scripts/go.py", "skill://demo/data/%C3%BC%20b.bin",
        }  # fmt: skip
        for one in entry["resources"]:
            read = (await client.read_resource(one["uri"])).contents[0]
            data = read.text.encode() if isinstance(read, types.TextResourceContents) else b"\xff\x00"
            assert one["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
            assert one["size"] == len(data)
        got = await client.session.send_request(
            GetSkill(params=GetSkillParams(uri="skill://demo/SKILL.md")), Answer
        )
        assert got.model_dump()["skill"] == entry
        with pytest.raises(MCPError) as caught:
            await client.session.send_request(GetSkill(params=GetSkillParams(uri="skill://demo")), Answer)
        assert caught.value.error.code == types.INVALID_PARAMS
        listed = (await client.list_resources()).resources
        manifest = next(one for one in listed if str(one.uri) == "skill://demo/SKILL.md")
        assert (manifest.name, manifest.mime_type) == ("demo", "text/markdown")


@in_loop
async def test_nothing_beside_a_skill_is_served(world: World) -> None:
    """Links, secrets, pipes and paths that climb are not there; a skill that has such things does not claim to be complete."""
    secret = world.home / "secret"
    secret.write_text("secret")
    folder = world.skill("odd", go="print(1)")
    (folder / "link").symlink_to(secret)
    (folder / "linked").symlink_to(world.home)
    (folder / ".env").write_text("KEY=1")
    os.mkfifo(folder / "pipe")
    async with world.client() as client:
        found = await skills(client)
        assert found["skill://odd/SKILL.md"]["resources"] == "dynamic"
        listed = {str(one.uri) for one in (await client.list_resources()).resources}
        assert listed == {"skill://odd/SKILL.md", "skill://odd/scripts/go.py"}
        for uri in (
            "skill://odd/link", "skill://odd/linked/secret", "skill://odd/.env", "skill://odd/pipe",
            "skill://odd/../../../home/secret", "skill://odd/%2e%2e/%2e%2e/secret", f"file://{secret}",
            "skill:///etc/passwd", "skill://odd//etc/passwd",
        ):  # fmt: skip
            with pytest.raises(MCPError):
                await client.read_resource(uri)


def test_a_folder_that_becomes_a_link_is_not_followed(world: World) -> None:
    """Between the listing and the reading a folder is replaced by a link out of the skill: nothing is read."""
    (world.home / "a.txt").write_text("secret")
    folder = world.skill("demo", go="print(1)")
    (folder / "data").mkdir()
    (folder / "data" / "a.txt").write_text("mine")
    from skillrun.host import Host
    from skillrun.runner import Runner

    with Runner(workspace=world.workspace, ceiling="default", host=Host(home=world.home)) as runner:
        volumes = library.library(runner.catalog())
    assert library.read(volumes, "skill://demo/data/a.txt").data == b"mine"
    (folder / "data").rename(folder / "away")
    (folder / "data").symlink_to(world.home)
    assert library.read(volumes, "skill://demo/data/a.txt") is None
