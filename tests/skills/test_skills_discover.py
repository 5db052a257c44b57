"""Discovery and the catalog: links, cycles, depth, nested skills, broken neighbours, equal keys (A-09 to A-18)."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from skillrun.errors import UsageError
from skillrun.problem import Severity
from skillrun.skills import discover as module
from skillrun.skills.catalog import merge
from skillrun.skills.discover import DEPTH, Found, RootStatus, discover
from skillrun.skills.skill import read_skill

if TYPE_CHECKING:
    from collections.abc import Callable


def walk(root: Path, *, own: bool = True, home: Path | None = None, repository: Path | None = None) -> Found:
    """Walk a root as an operator's, unless said otherwise."""
    return discover(root, own=own, home=home, repository=repository)


def keys(found: Found) -> list[str | None]:
    """Return the keys of what was found, in order."""
    return [skill.key for skill in found.skills]


def rules(found: Found) -> list[str]:
    """Return the rules of everything said: about the root and about its skills."""
    return [
        problem.rule for problem in (*found.problems, *(p for skill in found.skills for p in skill.problems))
    ]


def test_skills_come_in_byte_order(make_skill: Callable[..., Path], tmp_path: Path) -> None:
    """The order is that of the bytes of the paths, whatever the file system gives."""
    for name in ("b", "a", "a-b", "a/c", "Z", "é", "10", "9"):
        make_skill(f"skills/{name}")
    found = walk(tmp_path / "skills")
    assert [str(skill.found.relative_to(tmp_path / "skills")) for skill in found.skills] == [
        "10", "9", "Z", "a", "a/c", "a-b", "b", "é"
    ]  # fmt: skip


def test_depth_six_is_found_and_seven_not(make_skill: Callable[..., Path], tmp_path: Path) -> None:
    """Levels count from the root, which may be a skill itself."""
    deep = "/".join(f"d{n}" for n in range(1, DEPTH))
    for folder in ("skills", f"skills/{deep}/six", f"skills/{deep}/d6/seven"):
        make_skill(folder)
    assert keys(walk(tmp_path / "skills")) == ["skills", "six"]


@pytest.mark.parametrize("name", [".git", "node_modules", ".venv", "__pycache__"])
def test_other_peoples_folders_are_skipped(
    make_skill: Callable[..., Path], tmp_path: Path, name: str
) -> None:
    """What lies in these is never a skill of the root; a folder that only begins like one is looked at."""
    make_skill(f"skills/{name}/inside")
    make_skill(f"skills/{name}x/outside")
    assert keys(walk(tmp_path / "skills")) == ["outside"]


def test_the_number_of_folders_is_bounded(
    make_skill: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Past the limit the walk ends with an error, and what was found stays; skills come on top of the limit."""
    monkeypatch.setattr(module, "FOLDER_LIMIT", 50)
    for number in range(60):
        make_skill(f"many/s{number:02}", scripts={"x.sh": "#!/bin/sh\n"})
    found = walk(tmp_path / "many")
    assert (found.status, len(found.skills)) == (RootStatus.OK, 60)
    make_skill("empty/0-skill")
    for number in range(60):
        (tmp_path / f"empty/e{number:02}").mkdir()
    make_skill("empty/z-skill")
    found = walk(tmp_path / "empty")
    assert (found.status, keys(found)) == (RootStatus.INCOMPLETE, ["0-skill"])
    assert [(p.rule, p.severity) for p in found.problems] == [("root-too-large", Severity.ERROR)]


def test_a_09_a_near_miss_of_the_file_name_is_reported(
    make_skill: Callable[..., Path], tmp_path: Path
) -> None:
    """A-09: `skill.md` is reported with the name that is expected, and not read."""
    make_skill("skills/ok")
    for name in ("skill.md", "Skill.md", "SKILL.MD"):
        folder = make_skill(f"skills/low-{name[0]}{name[-1]}")
        (folder / "SKILL.md").rename(folder / name)
    found = walk(tmp_path / "skills")
    assert keys(found) == ["ok"]
    assert [problem.rule for problem in found.problems] == ["skill-misnamed"] * 3
    assert "expected `SKILL.md`" in found.problems[0].message
    with pytest.raises(UsageError, match=r"expected `SKILL\.md`"):
        read_skill(tmp_path / "skills/low-sd")


def test_a_10_linked_skills_are_found_and_traps_not(make_skill: Callable[..., Path], tmp_path: Path) -> None:
    """A-10: a linked skill is listed once with its physical folder; a dead link is told; `/` is not crawled."""
    make_skill("store/demo", scripts={"run.sh": "#!/bin/sh\n"})
    root = tmp_path / "skills"
    root.mkdir()
    (root / "demo").symlink_to("../store/demo")
    (root / "trap").symlink_to("/")
    (root / "dead").symlink_to("nowhere")
    began = time.perf_counter()
    found = walk(root)
    assert time.perf_counter() - began < 2
    (skill,) = found.skills
    assert (skill.key, skill.found, skill.path) == (
        "demo",
        root / "demo",
        (tmp_path / "store/demo").resolve(),
    )
    assert [script.path for script in skill.scripts] == [(tmp_path / "store/demo/scripts/run.sh").resolve()]
    assert sorted(problem.rule for problem in found.problems) == ["skill-link-dead", "skill-link-home"]


def test_a_10_list_and_run_agree(make_skill: Callable[..., Path], tmp_path: Path) -> None:
    """A-10: reading one folder by its link gives what the walk gives."""
    make_skill("store/demo")
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills/demo").symlink_to("../store/demo")
    found = walk(tmp_path / "skills")
    assert read_skill(tmp_path / "skills/demo", root=tmp_path / "skills") == found.skills[0]


@pytest.mark.parametrize("place", ["home", "above"])
def test_links_to_a_home_folder_are_not_followed(
    make_skill: Callable[..., Path], tmp_path: Path, place: str
) -> None:
    """Not even an operator's link leads the walk through the operator's home, nor from above it."""
    make_skill("users/me/secret-skill")
    root = tmp_path / "skills"
    root.mkdir()
    (root / "link").symlink_to(tmp_path / ("users/me" if place == "home" else "users"))
    found = walk(root, home=tmp_path / "users/me")
    assert found.skills == ()
    assert [problem.rule for problem in found.problems] == ["skill-link-home"]


def test_a_projects_links_stay_in_its_repository(make_skill: Callable[..., Path], tmp_path: Path) -> None:
    """Inside a repository a link reaches that repository, not a neighbour with the same beginning, nor elsewhere."""
    make_skill("repo/shared/inside")
    make_skill("repo-evil/outside")
    root = tmp_path / "repo/skills"
    root.mkdir()
    (root / "inside").symlink_to("../shared/inside")
    (root / "outside").symlink_to("../../repo-evil/outside")
    with_repository = walk(root, own=False, repository=tmp_path / "repo")
    assert keys(with_repository) == ["inside"]
    assert [problem.rule for problem in with_repository.problems] == ["skill-link-out"]
    without = walk(root, own=False)
    assert keys(without) == []
    assert [problem.rule for problem in without.problems] == ["skill-link-out"] * 2


def test_links_behind_an_operators_link_stay_there(make_skill: Callable[..., Path], tmp_path: Path) -> None:
    """An operator links a clone; the clone's own links get no further than the clone."""
    make_skill("clone/a")
    make_skill("clone/b")
    make_skill("elsewhere/c")
    (tmp_path / "clone/more").mkdir()
    (tmp_path / "clone/more/out").symlink_to(tmp_path / "elsewhere")
    root = tmp_path / "skills"
    root.mkdir()
    (root / "team").symlink_to(tmp_path / "clone")
    found = walk(root)
    assert keys(found) == ["a", "b"]
    assert [problem.rule for problem in found.problems] == ["skill-link-out"]


def test_a_11_a_linked_manifest_inside_its_root_is_read(
    make_skill: Callable[..., Path], tmp_path: Path
) -> None:
    """A-11 a: SKILL.md that links to a SKILL.md of the same root or repository is read, in the walk and alone."""
    make_skill("repo/store/a", "name: a")
    folder = tmp_path / "repo/skills/a"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").symlink_to("../../store/a/SKILL.md")
    assert walk(tmp_path / "repo").skills[0].valid
    (skill,) = walk(tmp_path / "repo/skills", own=False, repository=tmp_path / "repo").skills
    assert (skill.key, skill.valid) == ("a", True)
    assert read_skill(folder, root=tmp_path / "repo/skills", repository=tmp_path / "repo") == skill


@pytest.mark.parametrize(
    ("target", "rule"),
    [
        ("../../outside/SKILL.md", "manifest-link-out"),
        ("/etc/hostname", "manifest-link-other"),
        ("../secret.txt", "manifest-link-other"),
        ("nowhere", "manifest-link-dead"),
        ("SKILL.md", "manifest-link-dead"),
        ("/dev/zero", "manifest-link-other"),
    ],
)
def test_a_11_a_manifest_that_links_out_shows_nothing(
    make_skill: Callable[..., Path], tmp_path: Path, target: str, rule: str
) -> None:
    """A-11 b: it is refused, and no message holds a word of the target's content."""
    make_skill("outside", "name: outside\nsecret: hunter2")
    folder = tmp_path / "skills/b"
    folder.mkdir(parents=True)
    (tmp_path / "skills/secret.txt").write_text("hunter2")
    (folder / "SKILL.md").symlink_to(target)
    (skill,) = walk(tmp_path / "skills").skills
    assert (skill.valid, skill.front) == (False, None)
    assert skill.problems[0].rule == rule
    assert "hunter2" not in repr(skill)
    assert all(problem.at is None or problem.at.excerpt is None for problem in skill.problems)
    assert read_skill(folder, root=tmp_path / "skills").front is None


def test_a_12_cycles_end(make_skill: Callable[..., Path], tmp_path: Path) -> None:
    """A-12: links to a parent and to each other end the scan well under a second, each skill once."""
    root = tmp_path / "skills"
    make_skill("skills/foo")
    (root / "foo/foo").symlink_to("../foo")
    (root / "foo/up").symlink_to("../..")
    for name, other in (("a", "b"), ("b", "a")):
        (root / name).mkdir()
        (root / name / "loop").symlink_to(f"../{other}")
    (root / "self").symlink_to("self")
    began = time.perf_counter()
    found = walk(root)
    assert time.perf_counter() - began < 1
    assert keys(found) == ["foo"]
    assert rules(found) == ["skill-link-dead"]  # `self`


def test_a_13_the_earlier_root_wins(make_skill: Callable[..., Path], tmp_path: Path) -> None:
    """A-13: equal keys: the order of the roots decides, a warning names both paths, both stay listed and apart."""
    first = make_skill("one/deploy", "name: deploy\nnetwork: false")
    second = make_skill("two/deploy", "name: deploy\nnetwork: true")
    for roots, winner, loser in (((1, 2), first, second), ((2, 1), second, first)):
        founds = [walk(tmp_path / ("one" if n == 1 else "two"), own=False) for n in roots]
        catalog = merge(founds)
        assert [(one.skill.path, one.shadowed_by) for one in catalog.listed] == [
            (winner, None),
            (loser, winner),
        ]
        assert catalog.by_key("deploy").path == winner
        (shadowed,) = [problem for problem in catalog.problems if problem.rule == "skill-shadowed"]
        assert str(winner) in shadowed.message
        assert str(loser) in shadowed.message


def test_a_13_equal_keys_in_one_root(make_skill: Callable[..., Path], tmp_path: Path) -> None:
    """A-13: within one root the earlier path wins, and the other is told."""
    make_skill("one/a", "name: same")
    make_skill("one/b", "name: same")
    catalog = merge([walk(tmp_path / "one")])
    assert catalog.by_key("same").path == (tmp_path / "one/a").resolve()
    assert [problem.rule for problem in catalog.problems] == ["skill-shadowed"]


def test_a_project_does_not_take_an_operators_name(make_skill: Callable[..., Path], tmp_path: Path) -> None:
    """A project's skill that shadows an operator's is not run by name, and neither is the other in its place."""
    project, own = make_skill("project/deploy"), make_skill("own/deploy")
    make_skill("own/other")
    founds = [walk(tmp_path / "project", own=False), walk(tmp_path / "own", own=True)]
    catalog = merge(founds)
    assert [(one.skill.path, one.own, one.by_name) for one in catalog.listed] == [
        (project, False, False),
        (own, True, False),
        ((tmp_path / "own/other"), True, True),
    ]
    with pytest.raises(UsageError) as caught:
        catalog.by_key("deploy")
    assert caught.value.problem.rule == "skill-shadows-own"
    assert str(project) in caught.value.problem.message
    assert str(own) in caught.value.problem.message
    assert {problem.rule for problem in catalog.problems} == {"skill-shadowed", "skill-shadows-own"}
    assert merge(founds[::-1]).by_key("deploy").path == own  # the operator's root first: it is simply found


def test_one_folder_reached_by_two_roots_is_one_skill(
    make_skill: Callable[..., Path], tmp_path: Path
) -> None:
    """A skill that is linked from another root is listed once, and shadows nothing."""
    make_skill("store/demo")
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills/demo").symlink_to("../store/demo")
    catalog = merge([walk(tmp_path / "store", own=False), walk(tmp_path / "skills")])
    (one,) = catalog.listed
    assert (one.own, one.by_name) == (True, True)
    assert catalog.problems == ()


def test_a_14_one_key_for_list_and_run(make_skill: Callable[..., Path], tmp_path: Path) -> None:
    """A-14: the name is the key everywhere; the folder's name finds nothing, and says what does."""
    make_skill("skills/foo", "name: bar")
    catalog = merge([walk(tmp_path / "skills")])
    assert [skill.key for skill in catalog.skills] == ["bar"]
    assert catalog.by_key("bar").found.name == "foo"
    assert "name-differs-from-folder" in [problem.rule for problem in catalog.skills[0].problems]
    with pytest.raises(UsageError, match="no skill `foo`"):
        catalog.by_key("foo")


@pytest.mark.parametrize("name", ["../../etc", "/abs", "a/b", '""', "..", "~", ".", "Name With Blanks"])
def test_a_15_path_parts_are_no_key(make_skill: Callable[..., Path], tmp_path: Path, name: str) -> None:
    """A-15: the folder's name is the key instead, and the name is reported."""
    make_skill("skills/safe", f"name: {name}")
    make_skill("etc")
    found = walk(tmp_path / "skills")
    assert keys(found) == ["safe"]
    assert {"name-rule", "front-matter-name-type"} & set(rules(found))
    with pytest.raises(UsageError):
        merge([found]).by_key(name)


def test_an_unknown_key_gets_the_nearest(make_skill: Callable[..., Path], tmp_path: Path) -> None:
    """A typing error is answered with the key that was perhaps meant, a skill's own name with its key."""
    make_skill("skills/deploy-checker")
    make_skill("skills/odd", "name: My Odd One")
    catalog = merge([walk(tmp_path / "skills")])
    with pytest.raises(UsageError) as caught:
        catalog.by_key("deploy-cheker")
    assert caught.value.problem.help == "did you mean `deploy-checker`?"
    with pytest.raises(UsageError) as caught:
        catalog.by_key("My Odd One")
    assert "`odd`" in (caught.value.problem.help or "")
    with pytest.raises(UsageError, match="no skill `x`"):
        merge([]).by_key("x")


def test_a_16_one_bad_file_hides_no_other(make_skill: Callable[..., Path], tmp_path: Path) -> None:
    """A-16: every bad one is reported with path and cause, the good one is found and valid."""
    make_skill("skills/ok")
    for name, data in (("bad", b"\xff\xfe\x80"), ("empty", b""), ("noyaml", b"---\na: b: c\n---\n")):
        (make_skill(f"skills/{name}") / "SKILL.md").write_bytes(data)
    found = walk(tmp_path / "skills")
    assert {skill.key: skill.valid for skill in found.skills} == {
        "bad": False,
        "empty": False,
        "noyaml": False,
        "ok": True,
    }
    assert rules(found) == ["front-matter-not-utf8", "front-matter-empty-file", "front-matter-yaml"]
    for skill in found.skills[:3]:
        at = skill.problems[0].at
        assert at is not None
        assert at.path == skill.manifest


def test_a_16_what_can_not_be_read_is_reported(ordinary: Path) -> None:
    """A-16: a closed folder, a closed file and a closed root are each an error that names the cause."""
    root = ordinary / "skills"
    for name in ("noread", "nofile", "ok"):
        (root / name).mkdir(parents=True)
        (root / name / "SKILL.md").write_text(f"---\nname: {name}\n---\n")
    (root / "nofile/SKILL.md").chmod(0)
    (root / "noread").chmod(0)
    found = walk(root)
    assert {skill.key: skill.valid for skill in found.skills} == {"nofile": False, "ok": True}
    assert rules(found) == ["folder-unreadable", "manifest-unreadable"]
    assert "Permission denied" in found.problems[0].message
    (root / "noread").chmod(0o755)
    root.chmod(0)
    closed = walk(root)
    root.chmod(0o755)
    assert (closed.status, closed.skills) == (RootStatus.UNREADABLE, ())
    assert closed.problems[0].severity is Severity.ERROR


def test_a_missing_root_is_an_error_not_zero_skills(tmp_path: Path) -> None:
    """A root that is not there, or is a file, says so."""
    missing = walk(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    file = walk(tmp_path / "file")
    assert (missing.status, file.status) == (RootStatus.MISSING, RootStatus.NOT_A_FOLDER)
    assert [problem.severity for problem in (*missing.problems, *file.problems)] == [Severity.ERROR] * 2
    assert walk(Path("a\x00b")).status is RootStatus.UNREADABLE


def test_a_18_loose_files_are_no_skills(make_skill: Callable[..., Path], tmp_path: Path) -> None:
    """A-18: only folders with a SKILL.md count."""
    make_skill("skills/ok")
    for name in ("README.md", "NOTES.md", "ok.md"):
        (tmp_path / "skills" / name).write_text("# Text\n")
    found = walk(tmp_path / "skills")
    assert keys(found) == ["ok"]
    assert rules(found) == []


def test_a_skill_inside_a_skill_is_its_own_with_a_note(
    make_skill: Callable[..., Path], tmp_path: Path
) -> None:
    """Nested skills are both listed; the note names the outer one."""
    make_skill("skills/outer")
    make_skill("skills/outer/scripts/inner")
    make_skill("skills/outer/refs/deep/other")
    found = walk(tmp_path / "skills")
    assert keys(found) == ["outer", "other", "inner"]
    assert [(problem.rule, problem.severity) for problem in found.problems] == [
        ("skill-nested", Severity.NOTE)
    ] * 2
    assert "skills/outer`" in found.problems[0].message


@pytest.mark.timeout(10)
@pytest.mark.parametrize("kind", ["fifo", "folder", "device"])
def test_a_manifest_that_is_no_file_does_not_stop_the_walk(
    make_skill: Callable[..., Path], tmp_path: Path, kind: str
) -> None:
    """A FIFO, a folder or a device called SKILL.md is reported and not waited for."""
    make_skill("skills/ok")
    folder = tmp_path / "skills/odd"
    folder.mkdir()
    if kind == "fifo":
        os.mkfifo(folder / "SKILL.md")
    elif kind == "folder":
        (folder / "SKILL.md").mkdir()
    else:
        try:
            os.mknod(folder / "SKILL.md", 0o020666, os.makedev(1, 5))
        except PermissionError:
            pytest.skip("only root makes device nodes, and not in every container")
    found = walk(tmp_path / "skills")
    assert {skill.key: skill.valid for skill in found.skills} == {"odd": False, "ok": True}
    assert rules(found) == ["manifest-not-a-file"]


def test_a_large_manifest_is_refused(make_skill: Callable[..., Path], tmp_path: Path) -> None:
    """10 MB are not read."""
    make_skill("skills/big", text="---\nname: big\n---\n" + "x" * 10_000_000)
    assert rules(walk(tmp_path / "skills")) == ["front-matter-too-large"]


def test_names_of_any_bytes_are_walked(make_skill: Callable[..., Path], tmp_path: Path) -> None:
    """Folder names that are no UTF-8, or hold line ends and escapes, are found and kept as they are."""
    make_skill("skills/ok")
    for name in (b"caf\xe9", b"a\nb", b"\x1b[31m", b"-rf"):
        folder = tmp_path / "skills" / os.fsdecode(name)
        folder.mkdir()
        (folder / "SKILL.md").write_text("---\nname: x\n---\n")
    found = walk(tmp_path / "skills")
    assert len(found.skills) == 5
    assert {os.fsencode(skill.found.name) for skill in found.skills} >= {b"caf\xe9", b"a\nb"}


def test_a_home_folder_is_no_skill(make_skill: Callable[..., Path], tmp_path: Path) -> None:
    """A SKILL.md in a home folder would make the home readable: it is reported and grants nothing."""
    make_skill("me")
    make_skill("me/skills/ok")
    found = walk(tmp_path / "me", home=tmp_path / "me")
    assert {skill.found.name: skill.valid for skill in found.skills} == {"me": False, "ok": True}
    assert "skill-folder-refused" in rules(found)
    assert not read_skill(tmp_path / "me", home=tmp_path / "me").valid


def test_no_skill_where_none_is(tmp_path: Path) -> None:
    """A folder that is missing, is a file, or has no SKILL.md is a usage error that says which."""
    (tmp_path / "file").write_text("")
    (tmp_path / "bare").mkdir()
    for name, said in (
        ("gone", "does not exist"),
        ("file", "can't be read"),
        ("bare", "no `SKILL.md`"),
        ("a\x00", "not a path"),
    ):
        with pytest.raises(UsageError, match=said):
            read_skill(tmp_path / name)


def test_reading_writes_nothing(make_skill: Callable[..., Path], tmp_path: Path) -> None:
    """Discovery leaves names, modes and times as they were."""
    make_skill("skills/a", "name: ../../evil", scripts={"run.py": "print(1)\n"})
    before = {path: path.lstat().st_mtime_ns for path in tmp_path.rglob("*")}
    merge([walk(tmp_path / "skills")])
    assert {path: path.lstat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_the_walk_and_a_single_reading_agree(make_skill: Callable[..., Path], tmp_path: Path) -> None:
    """Scripts that the walk has listed already are those of a reading on its own, links and cycles included."""
    folder = make_skill(
        "skills/a", scripts={"run.py": "print(1)\n", "sub/x.sh": "", "SKILL.md": "---\nname: b\n---\n"}
    )
    (folder / "scripts/loop").symlink_to(".")
    (folder / "scripts/again").symlink_to("sub")
    (folder / "scripts/out").symlink_to("/etc")
    found = walk(tmp_path / "skills")
    assert keys(found) == ["a", "b"]
    assert read_skill(folder, root=tmp_path / "skills") == found.skills[0]
    assert [script.name for script in found.skills[0].scripts] == ["run.py", "sub/x.sh"]


def grow(chance: random.Random, folder: Path, depth: int) -> None:
    """Fill a folder with whatever a disk can hold: odd names, links to anywhere, FIFOs, closed files, broken skills."""
    for _ in range(chance.randrange(1, 6)):
        name = chance.choice(
            ["SKILL.md", "skill.md", "scripts", "a", "b", ".git", "x.py", os.fsdecode(b"\xff\n"), "é"]
        )
        path = folder / name
        if os.path.lexists(path):
            continue
        kind = chance.randrange(6)
        if kind <= 1 and depth < 5:
            path.mkdir()
            grow(chance, path, depth + 1)
        elif kind <= 3:
            path.write_bytes(
                chance.choice([b"---\nname: a\n---\n", b"---\n", b"", b"#!/bin/sh\r\n", b"\xff", b"#!x\n"])
            )
            path.chmod(chance.choice([0o644, 0o755, 0]))
        elif kind == 4:
            path.symlink_to(
                chance.choice(
                    [".", "..", "a", "nowhere", "/", "/etc", "SKILL.md", "scripts", str(folder.parent)]
                )
            )
        else:
            os.mkfifo(path)


@pytest.mark.timeout(3600)
def test_no_tree_makes_discovery_raise(ordinary: Path) -> None:
    """Random trees, as an operator's root and as a project's: every walk ends soon and raises nothing."""
    seed = int(os.environ.get("SKILLRUN_FUZZ_SEED", random.SystemRandom().randrange(2**32)))
    chance = random.Random(seed)
    for turn in range(max(40, int(os.environ.get("SKILLRUN_FUZZ", "0")) // 100)):
        root = ordinary / str(turn)
        root.mkdir()
        grow(chance, root, 0)
        where = f"SKILLRUN_FUZZ_SEED={seed} turn {turn}"
        began = time.perf_counter()
        try:
            catalog = merge([walk(root, own=False), walk(root, home=ordinary)])
        except Exception as other:
            raise AssertionError(where) from other
        assert time.perf_counter() - began < 10, where
        paths = [skill.path for skill in catalog.skills]
        assert len(paths) == len(set(paths)), where
        assert all(path.is_relative_to(root) for path in paths), where
        scripts = [script.path for skill in catalog.skills for script in skill.scripts]
        assert all(path.is_relative_to(root) and path.is_file() for path in scripts), where
