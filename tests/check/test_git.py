"""Git as plumbing: revisions are read, and nothing that a repository says is run, fetched or written elsewhere (law 10)."""

from __future__ import annotations

import hashlib
import subprocess
import zlib
from typing import TYPE_CHECKING

import pytest
from repository import ENVIRONMENT, commit, git

from skillrun.check.git import Repository, extract, open_repository
from skillrun.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from collection import Collection


def opened(collection: Collection) -> Repository:
    """Open the project's repository."""
    return open_repository(collection.folder, collection.host)


def test_files_modes_and_links(collection: Collection, tmp_path: Path) -> None:
    """A revision comes out as it was committed: bytes, exec bits, links, names that are no text."""
    folder = collection.skill("demo", scripts={"run.sh": "#!/bin/sh\n"})
    (folder / "scripts" / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("SKILL.md")
    (folder / "caf\udce9").write_bytes(b"\0\xff")
    revision = commit(collection.folder)
    (folder / "SKILL.md").write_text("changed later")
    into = tmp_path / "into"
    into.mkdir()
    repository = opened(collection)
    extract(repository, repository.tree(revision), into)
    there = into / "skills" / "demo"
    assert (there / "SKILL.md").read_text().startswith("---\nname: demo")
    assert (there / "scripts" / "run.sh").stat().st_mode & 0o777 == 0o700
    assert (there / "SKILL.md").stat().st_mode & 0o777 == 0o600
    assert (there / "link").readlink().name == "SKILL.md"
    assert (there / "caf\udce9").read_bytes() == b"\0\xff"


@pytest.mark.parametrize("name", ["nope", "--help", "-x", "main\nx", "", "HEAD:nothing", "refs/heads/*"])
def test_no_such_revision(collection: Collection, name: str) -> None:
    """What is no revision is a usage error, also when it looks like an option."""
    collection.skill("demo")
    commit(collection.folder)
    with pytest.raises(UsageError, match="no revision"):
        opened(collection).tree(name)


def test_no_repository(collection: Collection) -> None:
    """Outside of a repository there are no revisions."""
    with pytest.raises(UsageError, match="no git repository"):
        opened(collection)


def evil_config(marker: Path) -> str:
    """Write settings that make git run a program on many an occasion."""
    touch = f"touch {marker}"
    return (
        f'[core]\n\trepositoryformatversion = 1\n\tfsmonitor = "{touch}; false"\n\tpager = {touch}\n\tsshCommand = {touch}\n'
        f"\thooksPath = {marker.parent}/hooks\n\talternateRefsCommand = {touch}\n"
        f'[extensions]\n\tpartialClone = origin\n[remote "origin"]\n\turl = ext::sh -c {marker.parent}/evil\n\tpromisor = true\n'
        f'\tuploadpack = {touch}\n[protocol]\n\tallow = always\n[protocol "ext"]\n\tallow = always\n'
        f'[filter "x"]\n\tsmudge = {touch}\n\tclean = {touch}\n[diff "x"]\n\ttextconv = {touch}\n'
        f"[alias]\n\tcat-file = !{touch}\n\tls-tree = !{touch}\n\trev-parse = !{touch}\n"
    )


def test_a_repository_runs_nothing(collection: Collection, tmp_path: Path) -> None:
    """Monitors, hooks, filters, aliases and the transport of a missing object are not started; by plain git they are."""
    collection.skill("demo")
    collection.write(".gitattributes", "* filter=x diff=x\n")
    revision = commit(collection.folder)
    marker = tmp_path / "marker"
    (tmp_path / "evil").write_text(f"#!/bin/sh\ntouch {marker}\n")
    (tmp_path / "evil").chmod(0o755)
    blob = git(collection.folder, "rev-parse", f"{revision}:skills/demo/SKILL.md")
    (collection.folder / ".git" / "config").write_text(evil_config(marker))
    (collection.folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()  # a partial clone lacks it
    repository = opened(collection)
    into = tmp_path / "into"
    into.mkdir()
    with pytest.raises(UsageError, match="not in this clone"):
        extract(repository, repository.tree(revision), into)
    assert not marker.exists()
    # The control: git by itself fetches the missing object, by a command of the repository's own config.
    subprocess.run(
        ["git", "cat-file", "-p", blob],
        cwd=collection.folder,
        env=ENVIRONMENT,
        capture_output=True,
        check=False,
    )
    assert marker.exists()


def test_a_hook_in_path_is_not_git(collection: Collection) -> None:
    """A `git` that lies in the repository is not the one that is started, though PATH names its folder first."""
    collection.skill("demo")
    commit(collection.folder)
    fake = collection.write("bin/git", "#!/bin/sh\ntouch /tmp/never\n")
    fake.chmod(0o755)
    host = type(collection.host)(environ={"PATH": f"{collection.folder}/bin:{ENVIRONMENT['PATH']}"})
    assert open_repository(collection.folder, host).program != fake


def raw_tree(folder: Path, entries: list[tuple[bytes, bytes, str]]) -> str:
    """Write a tree object as bytes, which git itself would not make: mode, name, object."""
    body = b"".join(mode + b" " + name + b"\0" + bytes.fromhex(oid) for mode, name, oid in entries)
    data = b"tree %d\0" % len(body) + body
    oid = hashlib.sha1(data).hexdigest()
    path = folder / ".git" / "objects" / oid[:2]
    path.mkdir(exist_ok=True)
    (path / oid[2:]).write_bytes(zlib.compress(data))
    return oid


@pytest.mark.parametrize("kind", ["climbs", "dot git", "below a link", "dot"])
def test_a_tree_that_no_folder_can_have(collection: Collection, tmp_path: Path, kind: str) -> None:
    """Names that climb, hide in `.git`, or lie below a link are refused before anything is written outside."""
    collection.skill("demo")
    commit(collection.folder)
    blob = git(collection.folder, "hash-object", "-w", "--stdin", stdin=b"owned")
    link = git(collection.folder, "hash-object", "-w", "--stdin", stdin=str(tmp_path).encode())
    inner = raw_tree(collection.folder, [(b"100644", b"evil", blob)])
    entries = {
        "climbs": [(b"40000", b"..", inner)],
        "dot": [(b"40000", b".", inner)],
        "dot git": [(b"40000", b".GIT", inner)],
        "below a link": [(b"120000", b"a", link), (b"40000", b"a", inner)],
    }[kind]
    tree = raw_tree(collection.folder, entries)
    into = tmp_path / "deep" / "into"
    into.mkdir(parents=True)
    with pytest.raises(UsageError):
        extract(opened(collection), tree, into)
    assert not (tmp_path / "evil").exists()
    assert not (into.parent / "evil").exists()
