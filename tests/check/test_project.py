"""A project's place: decisions that are the same on every machine, by the functions of every other command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from skillrun.check.project import HOME, WORKSPACE, ProjectDisk, changed, written
from skillrun.check.rights import rights, rights_of
from skillrun.check.suggest import suggest
from skillrun.permissions.decide import decide
from skillrun.permissions.place import Place
from skillrun.permissions.request import read_request
from skillrun.permissions.resolve import Resolver
from skillrun.permissions.spelled import Spelled
from skillrun.problem import At

if TYPE_CHECKING:
    from collection import Collection


def test_links_inside_are_followed(tmp_path: Path) -> None:
    """A link in the project leads where it leads, also one that is written as a whole path; one that leaves it leaves it."""
    (tmp_path / "data").mkdir()
    (tmp_path / "near").symlink_to("data")
    (tmp_path / "whole").symlink_to(tmp_path / "data")
    (tmp_path / "away").symlink_to("/etc")
    resolver = Resolver(ProjectDisk({WORKSPACE: tmp_path}))
    assert resolver.follow(f"{WORKSPACE}/near/x").path == WORKSPACE / "data/x"
    assert resolver.follow(f"{WORKSPACE}/whole").path == WORKSPACE / "data"
    assert resolver.follow(f"{WORKSPACE}/away/passwd").fault == "a link on the way leads to nothing"


def test_nothing_else_of_the_machine_is_seen(tmp_path: Path) -> None:
    """Outside the project paths are text: no link of this machine is followed, nothing there exists."""
    resolver = Resolver(ProjectDisk({WORKSPACE: tmp_path}))
    for text in ("/etc/passwd", "/bin/sh", str(tmp_path), f"{HOME}/.ssh"):
        assert (resolver.follow(text).path, resolver.follow(text).exists) == (Path(text), False)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/${workspace}", "${workspace}"),
        ("/${workspace}/a", "${workspace}/a"),
        ("/${home}/a", "~/a"),
        ("/${home}", "~"),
        ("/${homes}/a", "${homes}/a"),
        ("/etc", "/etc"),
    ],
)
def test_places_in_words(path: str, words: str) -> None:
    """A place is written as a request writes it."""
    assert written(Path(path)) == words


def test_the_home_folder_of_this_machine_does_not_matter(collection: Collection) -> None:
    """A request for home is refused, though this project lies in the home folder."""
    collection.skill("demo", 'fs_read: ["~/"]\n')
    assert [one.key for one in collection.found("request-refused")] == [("fs_read", "~/")]


def test_a_ceiling_of_the_project(collection: Collection) -> None:
    """Paths of a ceiling file are relative to it, in a folder of the project too."""
    collection.skill("demo", 'fs_read: ["./part/data", "./data"]\n')
    collection.write("part/ceiling.yaml", "sandbox: {fs_read: [data]}\n")
    assert [one.key[1] for one in collection.found("request-refused", "part/ceiling.yaml")] == ["./data"]


def test_a_skill_outside_the_project(collection: Collection, tmp_path: Path) -> None:
    """A skill that lies elsewhere is checked as well, with its own folder readable by its own name."""
    other = type(collection)(tmp_path / "other", collection.temporary)
    folder = other.skill(
        "demo", 'fs_read: ["${skill}/data"]\n', {"run.py": "#!/usr/bin/env python3\nopen('a.txt', 'w')\n"}
    )
    session = collection.session()
    session = type(session)(session.folder, (folder.parent,), None, session.host)
    from skillrun.check.engine import check
    from skillrun.check.session import find_subjects

    project = session.project()
    catalog, subjects = find_subjects(session, project)
    rules = [one.rule for one in check(catalog, project, subjects=subjects).findings]
    assert sorted(rules) == ["request-refused", "undeclared-write"]


def test_changed_parts() -> None:
    """A value of frozen parts is made anew around the parts that change, and only there."""
    one = Spelled("a", At(Path("/x")), Path("/x"))
    made = changed(
        (one, (one, "text")), {Spelled: lambda spelled: Spelled(spelled.text, spelled.at, WORKSPACE)}
    )
    assert made == (
        Spelled("a", At(Path("/x")), WORKSPACE),
        (Spelled("a", At(Path("/x")), WORKSPACE), "text"),
    )


MANY = "".join(f"open('out/{n}.txt', 'w')\n" for n in range(4))


@pytest.mark.parametrize(
    ("source", "yaml", "left"),
    [
        ("print()\n", "fs_read: []", []),
        ("open('a.txt', 'w')\nopen('b.txt')\n", 'fs_read: ["./b.txt"]\nfs_write: ["./a.txt"]', []),
        (MANY, 'fs_write: ["./out/"]', []),
        ("open('a', 'w')\nopen('a')\n", 'fs_write: ["./a"]', []),
        ("import pathlib\n(pathlib.Path.home() / '.x').read_text()\n", "fs_read: []", ["lies in the home folder, which is never proposed"]),
        ("import os\nos.makedirs('.')\n", "fs_read: []", ["is the whole workspace"]),
        ("open(f'a/{x}', 'w')\n", "fs_read: []", ["has an end that the text does not tell"]),
        ("open('a*', 'w')\n", "fs_read: []", ["can't be written in a request"]),
        ("import requests\nrequests.get(x)\n", "fs_read: []", ["connects, and the text does not tell where"]),
        ("import os\nos.environ['A']\nos.environ['OPENAI_API_KEY']\n", "metadata:\n  skillrun:\n    env: [A]", ["is a variable that nobody is given"]),
        ("open('/etc/hosts-extra')\n", 'fs_read: ["/etc/hosts-extra"]', []),
    ],
)  # fmt: skip
def test_suggestions(collection: Collection, source: str, yaml: str, left: list[str]) -> None:
    """The least request that a text explains; what it does not explain is said and not guessed."""
    collection.skill("demo", scripts={"run.py": f"#!/usr/bin/env python3\n{source}"})
    (subject,) = collection.subjects()
    made = suggest(subject)
    assert made is not None
    assert (made.yaml(), [one.reason for one in made.left]) == (yaml, left)
    # Pasted into the skill it is a request without a problem, and there is nothing left to suggest.
    collection.skill("demo", f"{yaml}\n", {"run.py": f"#!/usr/bin/env python3\n{source}"})
    (after,) = collection.subjects()
    assert read_request(after.skill).problems == ()
    assert suggest(after) is None


@pytest.mark.parametrize("ceiling", ["default", "reader", "converter", "api", "dev", "own.yaml"])
def test_one_answer(collection: Collection, ceiling: str) -> None:
    """A check decides as a run in the same place does: the same rights, once both are written in the same words."""
    collection.skill(
        "demo",
        'fs_read: ["./data", "${workspace}/near/x", "${skill}/c", "./away/x", "/opt/no-such-thing", ".env"]\n'
        'fs_write: ["./out/", "./data/deep/"]\nnetwork: [a.example.com, "*.b.example.com:80-90"]\ntimeout: 90\n'
        "metadata: {skillrun: {env: [TZ, TOKEN, LD_PRELOAD], limits: {memory: 3GiB}}}\n",
    )
    collection.write(
        "own.yaml",
        'sandbox: {fs_read: [., /opt], fs_write: [./out, ./data/deep], deny: [private/, ./data/x], network: ["*.example.com"], env: [TOKEN]}\n',
    )
    (collection.folder / "data").mkdir()
    (collection.folder / "near").symlink_to("data")
    (collection.folder / "away").symlink_to("/usr")
    session = collection.session(ceiling)
    (subject,) = collection.subjects(ceiling)
    skill = subject.skill
    home = collection.folder.parent
    place = Place(workspace=collection.folder, skill=skill.path, scratch=Path("/scratch"), home=home)
    real = rights_of(decide(skill, session.layers(), place, digest=subject.digest))
    text = json.dumps(real.data()).replace(str(collection.folder), "${workspace}").replace(str(home), "~")
    seen = rights(subject)
    assert seen is not None
    in_order = {
        key: sorted(value) if isinstance(value, list) else value for key, value in json.loads(text).items()
    }
    assert in_order == seen.data()
