"""Deny entries and secret names: subtracted after the intersection, whether they exist or not (DESIGN 7; C-08, C-12)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from permission_scene import DIGEST, Scene

from skillrun.permissions.decide import decide
from skillrun.permissions.place import Place

if TYPE_CHECKING:
    from skillrun.permissions.grant import Grant

SECRETS = (
    ".env",
    ".ssh",
    ".aws",
    ".netrc",
    ".npmrc",
    ".claude/settings.json",
    ".config/gh",
    ".mcp.json",
    ".git-credentials",
)


def denied(scene: Scene, grant: Grant) -> set[str]:
    """Return the denied paths, relative to the workspace."""
    return {scene.tail(one.path) for one in grant.denied}


def test_secrets_of_a_granted_root_are_denied_present_or_not(scene: Scene) -> None:
    """Names directly under a root are denied although nothing is there, and nothing is made (C-08)."""
    grant = scene.grant("fs_read: ['.']")
    assert set(SECRETS) <= denied(scene, grant)
    assert list(scene.workspace.iterdir()) == []
    for name in SECRETS:
        assert not grant.allows_read(scene.workspace / name)
        assert not grant.allows_read(scene.workspace / name / "below")
    assert grant.allows_read(scene.workspace / "data")
    assert grant.allows_read(scene.workspace / ".environment")
    assert grant.allows_read(scene.workspace / ".claude/skills/x/SKILL.md")


def test_secrets_are_not_writable_either(scene: Scene) -> None:
    """A write root does not let a script make or change them."""
    scene.operator('sandbox: {fs_write: ["${workspace}"]}\n')
    grant = scene.grant("fs_write: ['.']")
    assert not grant.allows_write(scene.workspace / ".env")
    assert grant.allows_write(scene.workspace / "env")


@pytest.mark.parametrize("path", [".env", "sub/.env", "sub/.ssh/id", ".claude/settings.json", "a/b/.aws"])
def test_a_secret_that_is_asked_for_by_name_is_refused(scene: Scene, path: str) -> None:
    """At any depth below the operator's root: naming a secret gives no more than a broad path would."""
    scene.write(f"home/work/{path}")
    grant = scene.grant(f"fs_read: ['{path}']")
    assert scene.reads(grant) == set()
    assert grant.refused[0].asked == path
    assert "denied" in grant.refused[0].reason


def test_the_operators_file_can_name_the_exact_path(scene: Scene) -> None:
    """The path itself in the operator's file lifts it for that path alone; a root above does not, nor does a project."""
    for name in (".env", ".npmrc"):
        scene.write(f"home/work/{name}")
    scene.operator('sandbox: {fs_read: ["${workspace}", "${workspace}/.env"]}\n')
    grant = scene.grant("fs_read: ['.']")
    assert grant.allows_read(scene.workspace / ".env")
    assert not grant.allows_read(scene.workspace / ".npmrc")
    assert scene.reads(scene.grant("fs_read: ['.env']")) == {".env"}
    scene.operator('sandbox: {fs_read: ["${workspace}"]}\n')
    scene.project("sandbox: {fs_read: ['.env']}\n")
    assert scene.reads(scene.grant("fs_read: ['.env']")) == set()


def test_an_operators_root_inside_a_secret_folder_counts(scene: Scene) -> None:
    """Who names `~/.aws/cache` means it; the rest of `~/.aws` stays out."""
    scene.operator('sandbox: {fs_read: ["~/.aws/cache"]}\n')
    grant = scene.grant("fs_read: ['~/.aws']")
    assert grant.capabilities.fs_read == {scene.home / ".aws/cache"}
    assert grant.allows_read(scene.home / ".aws/cache/x")


def test_an_entrys_request_in_the_operators_file_names_it_too(scene: Scene) -> None:
    """`skills.<key>.request` is the operator's word about one skill."""
    scene.write("home/work/.env")
    scene.operator('skills: {demo: {request: {fs_read: ["${workspace}/.env"]}}}\n')
    assert scene.reads(scene.grant("")) == {".env"}


def test_secrets_of_workspace_and_home_inside_a_wider_root(scene: Scene) -> None:
    """A root above them does not take their secrets along."""
    scene.operator(f'sandbox: {{fs_read: ["{scene.top}"]}}\n')
    grant = scene.grant(f"fs_read: ['{scene.top}']")
    for folder in (scene.top, scene.home, scene.workspace):
        assert not grant.allows_read(folder / ".ssh/id")
    assert grant.allows_read(scene.home / "notes")


@pytest.mark.parametrize(
    "entry", ["private", "private/", "./private", "${workspace}/private", "~/work/private"]
)
def test_deny_holds_below_a_granted_root(scene: Scene, entry: str) -> None:
    """Every spelling of a denied path holds, for reading and for writing, and what it covers is refused by name."""
    scene.operator(f'sandbox: {{fs_write: ["${{workspace}}"], deny: ["{entry}"]}}\n')
    grant = scene.grant("fs_write: ['.', 'private/a', 'privately']")
    assert not grant.allows_read(scene.workspace / "private")
    assert not grant.allows_write(scene.workspace / "private/a")
    assert grant.allows_write(scene.workspace / "privately")
    assert [r.asked for r in grant.refused] == ["private/a"]
    assert grant.refused[0].limit_at.path == scene.config


def test_deny_holds_under_every_granted_root(scene: Scene) -> None:
    """A relative name is denied under each root, also under one that is deeper than the ceiling's (DESIGN 7)."""
    scene.operator('sandbox: {fs_read: ["${workspace}", "~/lib"], deny: [hidden]}\n')
    grant = scene.grant("fs_read: ['a', '~/lib', 'b/hidden/c']")
    assert {str(d.path) for d in grant.denied if d.reason.startswith("`deny`")} == {
        f"{scene.workspace}/a/hidden",
        f"{scene.home}/lib/hidden",
    }
    assert [r.asked for r in grant.refused] == ["b/hidden/c"]


def test_deny_is_the_union_of_all_layers(scene: Scene) -> None:
    """Base, project, entry, machine file and floor each add; none takes away, and an exact root does not lift a deny."""
    scene.operator(
        'sandbox: {fs_read: ["${workspace}", "${workspace}/a"], deny: [a]}\nfloor: {deny: [e]}\nskills: {demo: {ceiling: {deny: [c]}}}\n'
    )
    scene.project("sandbox: {deny: [b]}\n")
    scene.machine = scene.write("m.yaml", "sandbox: {deny: [d]}\n")
    grant = scene.grant("fs_read: ['.']")
    assert {"a", "b", "c", "d", "e"} <= denied(scene, grant)
    assert grant.allows_read(scene.workspace / "f")


def test_a_projects_deny_is_relative_to_its_file_as_well(scene: Scene) -> None:
    """A name in a file further up denies there and under every root."""
    (scene.home / ".git").mkdir()
    scene.write("home/skillrun.yaml", "sandbox: {deny: [work/x]}\n")
    assert {"x", "work/x"} <= denied(scene, scene.grant("fs_read: ['.']"))


def test_a_denied_link_denies_node_and_target(scene: Scene) -> None:
    """The name may not be replaced, and the content may not be reached by its own name."""
    scene.write("home/work/vault/key")
    (scene.workspace / "private").symlink_to("vault")
    (scene.workspace / ".env").symlink_to("config.txt")
    scene.operator('sandbox: {fs_read: ["${workspace}"], deny: [private]}\n')
    grant = scene.grant("fs_read: ['.', 'vault/key']")
    for name in ("private", "vault", "vault/key", ".env", "config.txt"):
        assert not grant.allows_read(scene.workspace / name), name
    assert [r.asked for r in grant.refused] == ["vault/key"]


def test_a_link_out_of_a_ceiling_root_denies_what_is_granted_elsewhere(scene: Scene) -> None:
    """Only the target is granted, and the denied link to it lies beside it: still denied."""
    (scene.workspace / "data").mkdir()
    (scene.workspace / "private").symlink_to("data")
    scene.operator('sandbox: {fs_read: ["${workspace}"], deny: [private]}\n')
    assert scene.reads(scene.grant("fs_read: ['data']")) == set()


def test_a_denied_write_path_is_not_made(scene: Scene) -> None:
    """Nothing that is denied is on the list of what to make."""
    scene.operator('sandbox: {fs_write: ["${workspace}"], deny: [out]}\n')
    grant = scene.grant("fs_write: ['out', 'out/x', 'ok']")
    assert grant.missing == ((scene.workspace / "ok", True),)


def test_deny_without_a_path_does_nothing(scene: Scene) -> None:
    """The control: the same question without the deny line is granted."""
    scene.operator('sandbox: {fs_write: ["${workspace}"]}\n')
    assert scene.writes(scene.grant("fs_write: ['private/a']")) == {"private/a"}


def test_another_spelling_of_a_missing_denied_name(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a volume ignores letter case, a missing `.ENV` is `.env` and is not made; here the two are apart (C-12)."""
    from skillrun.permissions.resolve import Resolver

    scene.operator('sandbox: {fs_write: ["${workspace}"]}\n')
    assert scene.writes(scene.grant("fs_write: ['.ENV/']")) == {".ENV"}
    monkeypatch.setattr(Resolver, "folds", lambda _self, _folder: True)
    assert scene.writes(scene.grant("fs_write: ['.ENV/']")) == set()
    assert scene.writes(scene.grant("fs_write: ['sub/.Env']")) == set()
    scene.operator('sandbox: {fs_write: ["${workspace}"], deny: ["${workspace}/Private"]}\n')
    assert scene.writes(scene.grant("fs_write: ['private/', 'public/']")) == {"public"}


def test_denied_paths_are_told_only_where_something_is_granted(scene: Scene) -> None:
    """A backend gets no paths that it need not care about."""
    scene.operator('sandbox: {fs_read: ["${workspace}"], deny: [hidden, /etc/shadow]}\n')
    grant = scene.grant("fs_read: ['data/file.txt']\nfs_write: ['/etc']")
    scene.write("home/work/data/file.txt")
    assert all(str(d.path).startswith(f"{scene.workspace}/data/file.txt/") for d in grant.denied)
    assert scene.grant("").denied == ()


def test_a_file_has_no_secrets_below_it(scene: Scene) -> None:
    """A granted file brings no denied names with it."""
    scene.write("home/work/file")
    assert scene.grant("fs_read: ['file']").denied == ()


def test_home_is_never_read_by_itself(scene: Scene) -> None:
    """Without a home in the place no home secret is looked for, and nothing breaks."""
    place = Place(scene.workspace, scene.skill, scene.top / "scratch")
    grant = decide(scene.make("fs_read: ['.']"), scene.layers(), place, digest=DIGEST)
    assert all(Path(scene.workspace) in d.path.parents for d in grant.denied)
