"""The lock: the same bytes everywhere, and every permission or file that moved is named."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from collection import Collection

from skillrun.check.lock import FILE_NAME, Lock, compare, entry_of, read_lock
from skillrun.check.rights import Effect, Rights, changes
from skillrun.check.store import write_store
from skillrun.errors import ConfigError, SkillError

if TYPE_CHECKING:
    from pathlib import Path

    from skillrun.check.finding import Finding

SCRIPT = {"run.sh": "#!/bin/sh\necho\n"}


def locked(collection: Collection, ceiling: str | None = None) -> Lock:
    """Approve everything, and read it back from disk."""
    path = collection.folder / FILE_NAME
    made = Lock(path, {}).with_entries(collection.subjects(ceiling))
    write_store(path, made.text())
    known = read_lock(path)
    assert known == made
    return made


def moved(collection: Collection, lock: Lock, ceiling: str | None = None) -> list[Finding]:
    """Compare with the lock."""
    return list(compare(lock, collection.subjects(ceiling), path=lock.path, roots=("skills",)))


def test_same_bytes_everywhere(collection: Collection, tmp_path: Path) -> None:
    """Another place, another home, other times, another order on disk: the lock is the same to the byte."""
    texts = set()
    for where in ("one", "two/deeper"):
        folder = tmp_path / where / "project"
        folder.mkdir(parents=True)
        folder.chmod(0o755)
        other = Collection(folder.resolve(), collection.temporary)
        names = ["b", "a", "größe"] if where == "one" else ["größe", "a", "b"]
        for name in names:
            other.skill(name, 'fs_read: ["./data", "~/x", "/etc/hosts"]\nfs_write: ["./out/"]\n', SCRIPT)
        other.write(
            "ceiling.yaml", 'sandbox: {fs_read: [., "~/x", /etc], fs_write: [./out/], deny: [private/]}\n'
        )
        texts.add(locked(other, "ceiling.yaml").text())
    assert len(texts) == 1
    text = texts.pop()
    assert str(tmp_path) not in text
    rights = json.loads(text)["skills"]["skills/a"]["rights"]
    assert rights["fs_read"] == ["${workspace}/data", "${workspace}/out", "/etc/hosts", "~/x"]
    assert rights["denied"] == [
        "${workspace}/data/private",
        "${workspace}/out/private",
        "/etc/hosts/private",
        "~/x/private",
    ]


def test_what_is_pinned(collection: Collection) -> None:
    """An entry holds the digest, the rights in words that any machine has, and each file."""
    collection.skill("demo", 'fs_read: ["./data"]\nfs_write: ["./out/"]\nnetwork: true\n', SCRIPT)
    entry = json.loads(locked(collection, "api").text())["skills"]["skills/demo"]
    assert entry["rights"] == {
        "fs_read": ["${workspace}/data", "${workspace}/out"],
        "fs_write": ["${workspace}/out"],
        "network": True,
        "env": [],
        "timeout": 120,
        "limits": {"memory": 2**30, "processes": 64, "file_size": 2**30, "output": 2**20},
        "denied": [],
        "unconfined": None,
    }
    assert set(entry["files"]) == {"SKILL.md", "scripts/run.sh"}
    assert entry["digest"].startswith("sha256:")


def test_nothing_moved(collection: Collection) -> None:
    """The tree that was approved has no finding."""
    collection.skill("demo", "", SCRIPT)
    assert moved(collection, locked(collection)) == []


def test_a_file_that_moved(collection: Collection) -> None:
    """Each file that was changed, added or removed is named; also the exec bit and the target of a link."""
    folder = collection.skill(
        "demo", "", {"run.sh": "#!/bin/sh\n", "old.sh": "#!/bin/sh\n", "mode.sh": "#!/bin/sh\n"}
    )
    (folder / "link").symlink_to("SKILL.md")
    lock = locked(collection)
    (folder / "scripts" / "run.sh").write_text("#!/bin/sh\ncurl x\n")
    (folder / "scripts" / "old.sh").unlink()
    (folder / "scripts" / "new.sh").write_text("#!/bin/sh\n")
    (folder / "scripts" / "mode.sh").chmod(0o755)
    (folder / "link").unlink()
    (folder / "link").symlink_to("scripts")
    (found,) = moved(collection, lock)
    assert found.rule == "lock-file"
    assert found.key == (
        "`link` changed", "`scripts/mode.sh` changed", "`scripts/new.sh` added", "`scripts/old.sh` removed", "`scripts/run.sh` changed",
    )  # fmt: skip


def test_a_permission_that_moved(collection: Collection) -> None:
    """What a skill would get now and did not is an error at its line; what it lost is a warning."""
    collection.skill("demo", 'fs_read: ["./a"]\ntimeout: 10\n')
    lock = locked(collection)
    collection.skill("demo", 'fs_read: ["./b"]\ntimeout: 20\n')
    found = [
        (one.severity.value, one.problem.message, one.problem.at and one.problem.at.line)
        for one in moved(collection, lock)
        if one.rule == "lock-permission"
    ]
    assert found == [
        ("error", "not as approved: fs_read gained ${workspace}/b", 4),
        ("warning", "not as approved: fs_read lost ${workspace}/a", 4),
        ("error", "not as approved: timeout widened from 10 to 20", 5),
    ]


def test_a_wider_ceiling_moves_permissions(collection: Collection) -> None:
    """The same skill under a ceiling that lets more through is not what was approved."""
    collection.skill("demo", 'fs_write: ["./out/"]\n')
    lock = locked(collection)
    found = moved(collection, lock, "converter")
    assert [one.key[:2] for one in found if one.key[0] == "fs_write"] == [("fs_write", "gained")]


def test_a_skill_that_nobody_approved(collection: Collection) -> None:
    """A new skill is an error; one that is gone is a warning, unless its root was not looked through."""
    collection.skill("demo")
    lock = locked(collection)
    shutil.rmtree(collection.folder / "skills" / "demo")
    collection.skill("fresh")
    assert [(one.rule, one.skill) for one in moved(collection, lock)] == [
        ("not-locked", "skills/fresh"),
        ("lock-stale", None),
    ]
    assert not list(compare(lock, (), path=lock.path, roots=("elsewhere",)))
    assert not list(compare(lock, (), path=lock.path, roots=("skills/dem",)))


def test_an_invalid_skill_is_never_approved(collection: Collection) -> None:
    """What does not run has no rights to approve."""
    collection.write("skills/demo/SKILL.md", "no front matter")
    with pytest.raises(SkillError):
        entry_of(collection.subjects()[0])


@pytest.mark.parametrize(
    "skills",
    [
        "[]",
        '{"../x": {}}',
        '{"/x": {}}',
        '{"a": {"digest": 5, "files": null, "rights": {}}}',
        '{"a": {"digest": "sha256:0", "files": {"x": 1}, "rights": {}}}',
        (
            '{"a": {"digest": "sha256:0", "files": null, "rights": {"fs_read": ["relative"], "fs_write": [], "network": [], "env": [], '
            '"timeout": 1, "limits": {"memory": 1, "processes": 1, "file_size": 1, "output": 1}, "denied": [], "unconfined": null}}}'
        ),
        (
            '{"a": {"digest": "sha256:0", "files": null, "rights": {"fs_read": [], "fs_write": [], "network": "true", "env": [], '
            '"timeout": true, "limits": {"memory": 1, "processes": 1, "file_size": 1, "output": 1}, "denied": [], "unconfined": null}}}'
        ),
    ],
)
def test_damaged_is_an_error(collection: Collection, skills: str) -> None:
    """A lock that is not one is a configuration error, never an empty one."""
    path = collection.write(FILE_NAME, f'{{"schema": "skillrun.lock/1", "skills": {skills}}}')
    with pytest.raises(ConfigError):
        read_lock(path)


def test_rights_come_back(collection: Collection) -> None:
    """What is written into a lock is read back as the same rights."""
    collection.skill(
        "demo",
        'fs_read: ["./a", "~/b", "/c"]\nfs_write: ["./out"]\nnetwork: [a.example.com, "*.b.example.com:80-90"]\n',
    )
    collection.write(
        "wide.yaml",
        "sandbox: {fs_read: [/], fs_write: [/], network: true, deny: [x/], limits: {output: 1GiB}}\n",
    )
    entry = entry_of(collection.subjects("wide.yaml")[0])
    assert Rights.from_data(entry.rights.data()) == entry.rights
    assert changes(entry.rights, entry.rights) == ()


def test_a_deny_that_is_gone_is_gained(collection: Collection) -> None:
    """A ceiling that denies less gives more."""
    collection.skill("demo", 'fs_read: ["."]\n')
    collection.write("strict.yaml", "sandbox: {fs_read: [.], deny: [private/]}\n")
    collection.write("loose.yaml", "sandbox: {fs_read: [.]}\n")
    strict, loose = (entry_of(collection.subjects(name)[0]).rights for name in ("strict.yaml", "loose.yaml"))
    assert [(one.capability, one.effect, one.before) for one in changes(strict, loose)] == [
        ("deny", Effect.GAINED, "${workspace}/private")
    ]


def test_an_unlocked_home(collection: Collection) -> None:
    """A lock names the home folder as `~`, whoever's it is."""
    collection.skill("demo", 'fs_read: ["~/notes/"]\n')
    collection.write("ceiling.yaml", 'sandbox: {fs_read: ["~/notes"]}\n')
    assert json.loads(locked(collection, "ceiling.yaml").text())["skills"]["skills/demo"]["rights"][
        "fs_read"
    ] == ["~/notes"]
