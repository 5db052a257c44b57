"""Decisions that are remembered: the same as ones made anew, whatever happens in between."""

from __future__ import annotations

import os
import random
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from permission_scene import DIGEST, Scene

import skillrun.running.decisions as room
from skillrun import Host, Runner
from skillrun.errors import SkillrunError, UsageError
from skillrun.permissions.access import NamedPath
from skillrun.permissions.decide import NO_SCRATCH, decide
from skillrun.permissions.flags import Flags
from skillrun.permissions.resolve import HostDisk
from skillrun.running.call import Call
from skillrun.running.decisions import Decisions
from skillrun.running.lookup import Lookup

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillrun.permissions.grant import Grant
    from skillrun.permissions.place import Place
    from skillrun.skills.model import Skill

STEPS = int(os.environ.get("SKILLRUN_FUZZ", "1500"))
SEED = int(os.environ.get("SKILLRUN_SEED") or random.SystemRandom().randrange(2**32))
OPEN = 'sandbox: {fs_read: ["${workspace}"], fs_write: ["${workspace}/out"], deny: [hidden, "${workspace}/out/no"]}\n'
OWN = 'sandbox: {fs_read: ["${workspace}", "${scratch}"], fs_write: ["${workspace}/out", "${scratch}"]}\n'


@dataclass
class Desk:
    """What decides for one scene, and counts how often."""

    scene: Scene
    decisions: Decisions
    made: list[int]

    def grant(
        self, skill: Skill, call: Call | None = None, *, version: str = DIGEST, run: str = "1"
    ) -> Grant:
        """Decide about one run, which has a scratch folder of its own."""
        return self.decisions.decide(skill, version, self.place(run), call or Call(skill))

    def anew(self, skill: Skill, *, version: str = DIGEST, run: str = "1") -> Grant:
        """Decide with nothing remembered."""
        return self.decisions.afresh(skill, version, self.place(run), Call(skill))

    def place(self, run: str) -> Place:
        """Return the place of a run, with its scratch folder there."""
        scratch = self.scene.top / "runs" / run
        scratch.mkdir(parents=True, exist_ok=True)
        return replace(self.scene.place, scratch=scratch)


def seated(scene: Scene, monkeypatch: pytest.MonkeyPatch, text: str) -> Desk:
    """Make a desk under an operator's file."""
    scene.operator(text)
    (scene.workspace / "out").mkdir()
    layers = scene.layers()
    lookup = Lookup(workspace=scene.workspace, host=Host(home=scene.home), layers=layers, named_roots=())
    made: list[int] = []

    def counted(*arguments: object, **named: object) -> Grant:
        made.append(1)
        return decide(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(room, "decide", counted)
    return Desk(scene, Decisions(lookup, layers), made)


@pytest.fixture
def desk(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """Make a desk under an operator's file that allows most of the workspace."""
    return seated(scene, monkeypatch, OPEN)


def test_the_same_is_decided_once(desk: Desk) -> None:
    """Run upon run of one version, with other arguments of a model: one decision, looked after each time."""
    skill = desk.scene.make('fs_read: ["${workspace}/data"]\nfs_write: ["${workspace}/out"]')
    (desk.scene.workspace / "data").mkdir()
    first = desk.grant(skill)
    for word in ("a", "b"):
        assert desk.grant(skill, Call(skill, arguments=(word,)), run=word) is first
    assert len(desk.made) == 1
    assert desk.anew(skill) == first
    (desk.scene.workspace / "data/.env").write_text("secret")
    second = desk.grant(skill)
    assert (len(desk.made), second == desk.anew(skill)) == (3, True)
    (desk.scene.workspace / "data").rename(desk.scene.workspace / "other")
    (desk.scene.workspace / "data").symlink_to(desk.scene.home / ".ssh")
    assert not any(
        "data" in str(path) or ".ssh" in str(path) for path in desk.grant(skill).capabilities.fs_read
    )


@pytest.mark.parametrize(
    "more",
    [
        {"flags": Flags(read=("extra",))},
        {"arguments": ("extra",), "typed": True},
        {"named": (NamedPath("file", "extra"),)},
    ],
    ids=lambda more: next(iter(more)),
)
def test_what_is_added_for_one_call_is_that_call_s_alone(desk: Desk, more: dict[str, object]) -> None:
    """A flag, a typed argument, a file named by an argument: granted to it, and to no call before or after."""
    skill = desk.scene.make("")
    extra = desk.scene.workspace / "extra"
    extra.write_text("x")
    for _ in range(2):
        assert extra not in desk.grant(skill).capabilities.fs_read
        assert extra in desk.grant(skill, Call(skill, **more)).capabilities.fs_read  # type: ignore[arg-type]
    assert len(desk.made) == 3


def test_another_version_is_another_decision(desk: Desk) -> None:
    """A skill that asks for more in its next version is decided by what that says, and the first again by its own."""
    (desk.scene.workspace / "data").mkdir()
    one, two = desk.scene.make(""), desk.scene.make('fs_read: ["${workspace}/data"]')
    other = "sha256:" + "1" * 64
    for _ in range(2):
        assert desk.scene.reads(desk.grant(one)) == set()
        assert desk.scene.reads(desk.grant(two, version=other)) == {"data"}
    assert len(desk.made) == 2


def test_the_same_skill_in_another_place_is_another_decision(desk: Desk) -> None:
    """Who speaks about a skill, and what its folder is, depends on where it lies and under which root it was found."""
    skill = desk.scene.make("")
    for _ in range(2):
        desk.grant(skill)
        desk.grant(replace(skill, root=None))
        desk.grant(replace(skill, path=desk.scene.home / "skills/copy"))
    assert len(desk.made) == 3


@pytest.mark.parametrize("operator", [OPEN, OWN], ids=["cut", "granted"])
@pytest.mark.parametrize("text", ["${scratch}", "${scratch}/x", "${scratch}/../1/x", "${scratch}//x/./"])
def test_a_grant_that_names_the_scratch_folder_is_each_run_s_own(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, text: str, operator: str
) -> None:
    """It is decided for every run, names that run's folder, and the name that stands for one is nowhere in it."""
    desk = seated(scene, monkeypatch, operator)
    skill = scene.make(f'fs_read: ["{text}"]\nfs_write: ["{text}"]')
    for run in ("1", "2", "1"):
        grant = desk.grant(skill, run=run)
        assert grant == desk.anew(skill, run=run)
        seen = [str(path) for path in grant.capabilities.fs_read] + [
            str(one.resolved) for one in grant.refused
        ]
        inside = f"{scene.top}/runs/{'1' if '..' in text else run}"
        assert seen
        assert all(path.startswith(inside) for path in seen), seen
    assert len(desk.made) == 1 + 2 * 3  # the first of them found out that it can't be remembered


def test_an_operator_may_name_the_scratch_folder_as_well(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deny line of a project that names it makes every decision each run's own."""
    scene.project('sandbox: {deny: ["${scratch}/no"]}\n')
    desk = seated(scene, monkeypatch, OWN)
    skill = scene.make('fs_write: ["${scratch}"]')
    for run in ("1", "2"):
        grant = desk.grant(skill, run=run)
        assert [one.path for one in grant.denied if one.path.name == "no"] == [
            scene.top / "runs" / run / "no"
        ]


@pytest.mark.parametrize("more", ["", '"${scratch}/w/"'], ids=["plain", "scratch"])
def test_a_decision_that_saw_the_disk_change_is_made_anew(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, more: str
) -> None:
    """A name that appears between two looks at it: neither given out nor remembered, and no folder of another name made."""
    out, other = desk.scene.workspace / "out", desk.scene.workspace / "OUT"
    looks: list[str] = []

    def flickering(path: str) -> os.stat_result:
        if path == str(other):
            looks.append(path)
            if len(looks) % 2:
                raise FileNotFoundError(2, "No such file or directory", path)
            return os.lstat(out)
        return os.lstat(path)

    skill = desk.scene.make(f'fs_read: ["./out", "./OUT"]\nfs_write: [{more}]')
    with monkeypatch.context() as patch:
        patch.setattr(HostDisk, "lstat", staticmethod(flickering))
        for run in ("1", "2"):
            grant = desk.grant(skill, run=run)
            seen = (*grant.capabilities.fs_read, *(one.resolved for one in grant.refused))
            assert str(NO_SCRATCH) not in "".join(map(str, seen))
            assert (f"runs/{run}/w" in "".join(map(str, seen))) == bool(more)
    assert len(looks) >= 4
    assert len(desk.made) == (4 if not more else 3)
    assert not any(known.found for known in desk.decisions._known.values())


def test_a_skill_that_has_two_names_is_decided_about_by_each(scene: Scene) -> None:
    """What an operator says about one name of a folder holds for that one, whichever was called first."""
    roots = scene.home / "skills"
    demo = roots / "demo"
    (demo / "scripts").mkdir()
    (demo / "SKILL.md").write_text("---\nname: My Skill\ndescription: d\nfs_read: [./in]\n---\n")
    (demo / "scripts/a.sh").write_text("#!/bin/sh\n")
    demo.rename(scene.top / "kept")
    for name in ("limited", "other"):
        (roots / name).symlink_to(scene.top / "kept")
    scene.ceiling = scene.write(
        "c.yaml", 'sandbox: {fs_read: ["${workspace}"]}\nskills: {limited: {ceiling: {fs_read: []}}}\n'
    )
    (scene.workspace / "in").write_text("x")
    layers = scene.layers()
    for order in (("limited", "other"), ("other", "limited")):
        lookup = Lookup(workspace=scene.workspace, host=Host(home=scene.home), layers=layers, named_roots=())
        decisions = Decisions(lookup, layers)
        for name in order * 2:
            skill = lookup.find(roots / name)
            assert (skill.key, skill.path.name) == (name, "kept")
            found = decisions.decide(skill, DIGEST, scene.place, Call(skill)).capabilities.fs_read
            assert found == (set() if name == "limited" else {scene.workspace / "in"}), order


def test_a_skill_that_reads_otherwise_under_the_same_digest(desk: Desk) -> None:
    """A SKILL.md that is a link counts by its target's name: what it holds now is what is decided about, both ways."""
    for _ in range(2):
        for name in ("data", "out"):
            (desk.scene.workspace / name).mkdir(exist_ok=True)
            skill = desk.scene.make(f'fs_read: ["${{workspace}}/{name}"]')
            assert desk.scene.reads(desk.grant(skill)) == {name}
            assert desk.scene.reads(desk.anew(skill)) == {name}


def test_what_is_too_large_is_not_remembered(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A skill that makes a decision long has it made each time, and the memory of a runner does not grow by it."""
    monkeypatch.setattr(room, "_LARGEST", 100)
    names = ", ".join(f"./data/{number}" for number in range(100))
    (desk.scene.workspace / "data").mkdir()
    skill = desk.scene.make(f"fs_read: [{names}]")
    for _ in range(2):
        assert len(desk.grant(skill).capabilities.fs_read) == 100
    assert (len(desk.made), desk.decisions._known) == (2, {})
    small = desk.scene.make("")
    assert desk.grant(small) is desk.grant(small)


def test_a_workspace_that_is_replaced_is_refused_each_time(desk: Desk) -> None:
    """It is looked at with every decision, a remembered one too; put back, all is as before."""
    skill = desk.scene.make("")
    first = desk.grant(skill)
    away = desk.scene.workspace.with_name("away")
    for again in (False, True):
        desk.scene.workspace.rename(away)
        if again:
            desk.scene.workspace.symlink_to(away)
        for _ in range(2):
            with pytest.raises(UsageError) as refused:
                desk.grant(skill)
            assert refused.value.problem.rule == "workspace-gone"
        if again:
            desk.scene.workspace.unlink()
        away.rename(desk.scene.workspace)
        assert desk.grant(skill) == first


def test_no_more_is_remembered_than_the_bound(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A runner that lives long and sees many versions forgets, and decides right."""
    monkeypatch.setattr(room, "_MOST", 3)
    skill = desk.scene.make("")
    for number in range(10):
        desk.grant(skill, version=f"sha256:{number:064}")
        assert len(desk.decisions._known) <= 3
    assert desk.grant(skill) == desk.anew(skill)


NAMES = ("data", "out", "x", ".env", ".git", "hidden", "no")


def change(chance: random.Random, top: Path) -> None:
    """Change one thing in a workspace: make, remove, rename, exchange for a link, lead a link elsewhere, a hard link."""
    folders = [top, *(path for path in top.rglob("*") if path.is_dir() and not path.is_symlink())]
    path = chance.choice(folders) / chance.choice(NAMES)
    other = chance.choice(folders) / chance.choice(NAMES)
    kind = chance.randrange(7)
    if len(path.parts) > len(top.parts) + 4:
        return
    try:
        if kind < 2 and (path.is_symlink() or path.is_file()):
            path.unlink()
        elif kind < 2 and path.is_dir():
            shutil.rmtree(path)
        elif kind < 4:
            path.mkdir() if chance.random() < 0.6 else path.write_text("x")
        elif kind == 4:
            path.symlink_to(
                chance.choice((other, Path("../out"), top.parent, Path("/nowhere"), Path(path.name)))
            )
        elif kind == 5:
            path.rename(other)
        else:
            os.link(path, other, follow_symlinks=False)
    except OSError:
        pass  # it was there, or was not, or is in itself


def outcome(ask: Callable[..., Grant], skill: Skill, version: str, run: str) -> object:
    """Return a grant, or the words of a refusal."""
    try:
        return ask(skill, version=version, run=run)
    except SkillrunError as refused:
        return [(problem.rule, problem.message) for problem in refused.problems]


def test_remembered_is_the_same_as_anew(desk: Desk) -> None:
    """Whatever is done to the workspace between two calls, what is remembered is what would be decided now."""
    chance = random.Random(SEED)
    texts = (
        "",
        'fs_read: ["${workspace}"]\nfs_write: ["${workspace}/out"]',
        'fs_read: ["${workspace}/data/x", "${workspace}/out/../data"]',
        'fs_read: ["${workspace}/hidden"]\nfs_write: ["${workspace}/out/x", "${workspace}/data/.env"]',
        'fs_write: ["${scratch}/x", "${workspace}/out/no"]',
    )
    skills = [(desk.scene.make(text), f"sha256:{number:064}") for number, text in enumerate(texts)]
    remembered = changed = 0
    last: dict[str, object] = {}
    for step in range(STEPS):
        if chance.random() < 0.7:
            change(chance, desk.scene.workspace)
        skill, version = chance.choice(skills)
        before = len(desk.made)
        found = outcome(desk.grant, skill, version, str(step % 3))
        remembered += len(desk.made) == before
        assert found == outcome(desk.anew, skill, version, str(step % 3)), (SEED, step)
        changed += last.get(version, found) != found
        last[version] = found
    assert remembered > STEPS / 20, (SEED, remembered)
    assert changed > STEPS / 20, (SEED, changed)


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="the levels of Linux")
@pytest.mark.parametrize("level", [1, 2])
def test_a_granted_folder_that_a_link_takes_the_place_of(tmp_path: Path, level: int) -> None:
    """Between two runs of one runner: the second reads nothing through the link, which a plain program does."""
    work, skill = tmp_path / "work", tmp_path / "skills/demo"
    (work / "data").mkdir(parents=True)
    (work / "data/x").write_text("in the workspace")
    (tmp_path / "away").mkdir()
    (tmp_path / "away/x").write_text("a secret")
    (skill / "scripts").mkdir(parents=True)
    (skill / "SKILL.md").write_text('---\nname: demo\ndescription: d\nfs_read: ["${workspace}/data"]\n---\n')
    (skill / "scripts/read.sh").write_text('#!/bin/sh\ncat "$WORKSPACE/data/x"\n')
    with Runner(workspace=work, skills=[tmp_path / "skills"], backend=f"linux-{level}") as runner:
        if level == 2 and not runner.launcher.probe().level2:
            pytest.skip("no level 2 on this host")
        found = runner.find(skill)
        for _ in range(3):
            assert runner.run(found).stdout.text == "in the workspace"
        (work / "data").rename(work / "aside")
        (work / "data").symlink_to(tmp_path / "away")
        assert (work / "data/x").read_text() == "a secret"
        for _ in range(2):
            assert "secret" not in runner.run(found).stdout.text
        (work / "data").unlink()
        (work / "aside").rename(work / "data")
        assert runner.run(found).stdout.text == "in the workspace"
