"""The difference of two versions: gained, widened, narrowed and lost, in what skills get, ask for and use."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING

import pytest
from collection import Collection

from skillrun.check.difference import SkillChange, State, difference
from skillrun.report import differing, document
from skillrun.report.showing import View

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WIDE = (
    'sandbox: {fs_read: ["${workspace}", /etc], fs_write: ["${workspace}"], network: true, env: [A, B], timeout: 600,'
    " limits: {memory: 8GiB}}\n"
)


@pytest.fixture
def two(collection: Collection, tmp_path: Path) -> Callable[..., tuple[SkillChange, ...]]:
    """Give a comparison of one skill's front matter and scripts before and after."""

    def compare(
        before: tuple[str, dict[str, str]] | None,
        after: tuple[str, dict[str, str]] | None,
        ceiling: str = WIDE,
    ) -> tuple[SkillChange, ...]:
        versions = []
        for number, version in enumerate((before, after)):
            folder = tmp_path / str(number) / "project"
            folder.mkdir(parents=True)
            folder.chmod(0o755)
            one = Collection(folder.resolve(), collection.temporary)
            one.write("ceiling.yaml", ceiling)
            if version is not None:
                one.skill("demo", *version)
            versions.append(one.subjects("ceiling.yaml"))
        return difference(*versions)

    return compare


def words(change: SkillChange, kind: str = "gets") -> list[str]:
    """Write the changes of one kind shortly."""
    return [
        f"{one.effect.value} {one.capability} {one.before} -> {one.after}" for one in getattr(change, kind)
    ]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("", 'fs_read: ["./a"]\n', ["gained fs_read None -> ${workspace}/a"]),
        ('fs_read: ["./a"]\n', "", ["lost fs_read ${workspace}/a -> None"]),
        (
            'fs_read: ["./a/b", "./a/c"]\n',
            'fs_read: ["./a"]\n',
            ["widened fs_read ${workspace}/a/b, ${workspace}/a/c -> ${workspace}/a"],
        ),
        (
            'fs_read: ["./a"]\n',
            'fs_read: ["./a/b"]\n',
            ["narrowed fs_read ${workspace}/a -> ${workspace}/a/b"],
        ),
        ('fs_read: ["./a"]\n', 'fs_write: ["./a"]\n', ["gained fs_write None -> ${workspace}/a"]),
        ("network: false\n", "network: true\n", ["gained network None -> every host"]),
        (
            "network: [a.example.com]\n",
            "network: true\n",
            ["widened network a.example.com:443 -> every host"],
        ),
        (
            "network: true\n",
            "network: [a.example.com]\n",
            ["narrowed network every host -> a.example.com:443"],
        ),
        ("network: true\n", "", ["lost network every host -> None"]),
        (
            "network: [a.example.com]\n",
            "network: ['*.example.com']\n",
            ["widened network a.example.com:443 -> *.example.com:443"],
        ),
        (
            "network: [a.example.com]\n",
            "network: [a.example.com:80-443]\n",
            ["widened network a.example.com:443 -> a.example.com:80-443"],
        ),
        (
            "network: [a.example.com]\n",
            "network: [b.example.com]\n",
            ["gained network None -> b.example.com:443", "lost network a.example.com:443 -> None"],
        ),
        ("timeout: 10\n", "timeout: 20\n", ["widened timeout 10 -> 20"]),
        ("timeout: 20\n", "timeout: 10\n", ["narrowed timeout 20 -> 10"]),
        ("", "metadata: {skillrun: {env: [A]}}\n", ["gained env None -> A"]),
        (
            "metadata: {skillrun: {limits: {memory: 1GiB}}}\n",
            "metadata: {skillrun: {limits: {memory: 2GiB}}}\n",
            ["widened limits.memory 1073741824 -> 2147483648"],
        ),
        ("license: a\n", "license: b\n", []),
    ],
)
def test_each_capability(
    two: Callable[..., tuple[SkillChange, ...]], before: str, after: str, expected: list[str]
) -> None:
    """Each capability, each way."""
    (change,) = two((before, {}), (after, {}))
    assert words(change) == expected
    assert change.more is any(word.startswith(("gained", "widened")) for word in expected)


def test_nothing_changed(two: Callable[..., tuple[SkillChange, ...]]) -> None:
    """Two equal versions have no difference."""
    assert (
        two(
            ('fs_read: ["./a"]\n', {"run.sh": "#!/bin/sh\n"}),
            ('fs_read: ["./a"]\n', {"run.sh": "#!/bin/sh\n"}),
        )
        == ()
    )


def test_what_is_asked_and_refused(two: Callable[..., tuple[SkillChange, ...]]) -> None:
    """A request that the ceiling refuses shows as asked for, so that nobody merges it unseen."""
    (change,) = two(("", {}), ('fs_read: ["/root/x"]\ntrust: core\n', {}))
    assert words(change) == []
    assert words(change, "asks") == [
        "gained fs_read None -> /root/x",
        "gained unconfined None -> trust: core",
    ]
    assert change.more


def test_what_scripts_use(two: Callable[..., tuple[SkillChange, ...]]) -> None:
    """A script that begins to connect shows, though the request is the same."""
    (change,) = two(
        ("network: true\n", {"run.sh": "#!/bin/sh\ncurl https://a.example.com\n"}),
        ("network: true\n", {"run.sh": "#!/bin/sh\ncurl https://b.example.com\n"}),
    )
    assert words(change, "uses") == [
        "gained network None -> b.example.com:443",
        "lost network a.example.com:443 -> None",
    ]
    assert change.files == (("scripts/run.sh", "changed"),)


def test_added_and_removed(two: Callable[..., tuple[SkillChange, ...]]) -> None:
    """A new skill gained what it gets; one that is gone lost it."""
    (added,) = two(None, ('fs_read: ["./a"]\n', {}))
    assert (added.state, "gained fs_read None -> ${workspace}/a" in words(added)) == (State.ADDED, True)


def test_moved(collection: Collection, tmp_path: Path) -> None:
    """A skill in another folder is compared with itself, by its key."""
    collection.skill("old/demo", 'fs_read: ["./a"]\n')
    before = collection.subjects()
    other = Collection((tmp_path / "other").resolve(), collection.temporary)
    shutil.copytree(collection.folder, other.folder)
    (other.folder / "skills" / "new").mkdir()
    (other.folder / "skills" / "old" / "demo").rename(other.folder / "skills" / "new" / "demo")
    (change,) = difference(before, other.subjects())
    assert (change.label, change.moved_from, change.gets) == ("skills/new/demo", "skills/old/demo", ())


def test_a_version_that_does_not_run(two: Callable[..., tuple[SkillChange, ...]]) -> None:
    """A skill that was broken gets nothing any more and says so."""
    (change,) = two(('fs_read: ["./a"]\n', {}), ("fs_read: 5\n", {}))
    assert change.invalid
    assert "lost fs_read ${workspace}/a -> None" in words(change)


def test_markdown_is_not_broken_by_names(two: Callable[..., tuple[SkillChange, ...]]) -> None:
    """Text from skills can't leave its code span, its table cell or its line."""
    evil = "a|b`c``d<img src=x>@everyone (http://evil)"
    (change,) = two(("", {}), (f"fs_read: ['./{evil}']\n", {}))
    assert change.state is State.CHANGED
    lines = list(differing.markdown([change]))
    row = next(line for line in lines if "evil" in line)
    assert len(re.split(r"(?<!\\)\|", row)) == 6
    cell = re.split(r"(?<!\\)\|", row)[4].strip()
    fence = re.match("`+", cell)
    assert fence is not None
    assert cell.endswith(fence[0])
    assert fence[0] not in cell[len(fence[0]) : -len(fence[0])]


def test_the_forms(two: Callable[..., tuple[SkillChange, ...]]) -> None:
    """Terminal, Markdown and JSON tell the same."""
    changes = two(
        ('fs_read: ["./a"]\n', {"run.sh": "#!/bin/sh\n"}),
        ('fs_read: ["./a", "./b"]\n', {"run.sh": "#!/bin/sh\ngit x\n"}),
    )
    assert list(differing.lines(changes, View(None, 100))) == [
        "skills/demo",
        "  + gets fs_read: ${workspace}/b",
        "  + scripts use program: git",
        "    changed SKILL.md",
        "    changed scripts/run.sh",
        "",
    ]
    assert "| 🔺 gained | gets `fs_read` |  | `${workspace}/b` |" in list(differing.markdown(changes))
    data = json.loads(document.write(differing.shape(changes)))
    assert data["summary"] == {"changed": 1, "more": 1}
    assert data["skills"][0]["gets"] == [
        {"capability": "fs_read", "effect": "gained", "before": None, "after": "${workspace}/b"}
    ]
