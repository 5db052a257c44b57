"""Git as plumbing: the bytes of a revision, and nothing that a repository's own settings could start.

Law 10. Three commands are used, `rev-parse`, `ls-tree` and `cat-file`; none of them looks at the working
tree. What could still run something is switched off: hooks and file system monitors by setting, replacement
objects, optional locks, and every transport, since a missing object of a partial clone is otherwise fetched
with whatever command the repository's config names (`remote.*.uploadpack`, `core.sshCommand`).
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skillrun.errors import SkillError, UsageError
from skillrun.permissions.project import repository_root
from skillrun.problem import error
from skillrun.skills.interpreter import find_interpreter
from skillrun.skills.model import Command, Starter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from skillrun.host import Host

_SETTINGS: Final = (
    "core.fsmonitor=false",  # a program that git starts to ask what changed
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "protocol.allow=never",  # no transport, `ext::` and a config's upload-pack included
    "submodule.recurse=false",
)
_ENVIRONMENT: Final = {
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_LAZY_FETCH": "1",  # git 2.45 and newer; older ones are stopped by the protocol
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
}
_SECONDS: Final = 120  # for one listing
_MOST_ENTRIES: Final = 200_000
_MOST_BYTES: Final = 1 << 30  # of one extraction; a repository of skills is a hundredth of it
_LINK, _EXECUTABLE = "120000", "100755"


@dataclass(frozen=True, slots=True)
class Blob:
    """One file of a revision: path relative to the repository's root, mode and object."""

    path: str
    mode: str
    oid: str


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository, read only. `top` is the folder that holds `.git`."""

    top: Path
    program: Path

    def tree(self, revision: str) -> str:
        """Return the tree of a revision. UsageError when there is none of that name here."""
        wrong = revision.startswith("-") or "\0" in revision or "\n" in revision
        done = None if wrong else self._run("rev-parse", "--verify", "--quiet", f"{revision}^{{tree}}")
        if done is None or done.returncode != 0:
            message = f"`{revision}` is no revision of the repository `{self.top}`"
            help_ = "write a folder as `./NAME`; a shallow clone lacks older revisions (`fetch-depth: 0`)"
            raise UsageError(error("revision-unknown", message, help=help_))
        return done.stdout.decode("ascii", "replace").strip()

    def blobs(self, tree: str, paths: Sequence[str] = ()) -> tuple[Blob, ...]:
        """List the files of a tree, below some paths or all. Submodules are left out: their files are not here."""
        done = self._run("ls-tree", "-r", "-z", "--full-tree", tree, "--", *paths)
        if done.returncode != 0:
            raise _failed(done.stderr)
        found = []
        for line in done.stdout.split(b"\0"):
            head, tab, path = line.partition(b"\t")
            if tab:
                mode, kind, oid = head.decode("ascii").split()
                if kind == "blob":
                    found.append(Blob(os.fsdecode(path), mode, oid))
        if len(found) > _MOST_ENTRIES:
            raise UsageError(
                error("revision-too-large", f"the revision holds more than {_MOST_ENTRIES} files")
            )
        return tuple(found)

    def contents(self, blobs: Iterable[Blob]) -> Iterator[tuple[Blob, bytes]]:
        """Yield the bytes of files, one after another, through one process."""
        process = subprocess.Popen(
            self._words("cat-file", "--batch"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=_environment(), cwd="/",
        )  # fmt: skip
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 - both are pipes
        left = _MOST_BYTES
        try:
            for blob in blobs:
                process.stdin.write(f"{blob.oid}\n".encode())
                process.stdin.flush()
                words = process.stdout.readline().split()
                if len(words) != 3 or words[1] != b"blob":  # noqa: PLR2004 - object, kind, size
                    message = f"`{blob.path}` of that revision is not in this clone"
                    raise UsageError(
                        error(
                            "revision-incomplete",
                            message,
                            help="make a full clone (`fetch-depth: 0`, no filter)",
                        )
                    )
                size = int(words[2])
                left -= size
                if left < 0:
                    raise UsageError(error("revision-too-large", "the revision is larger than 1 GiB"))
                data = process.stdout.read(size + 1)
                if len(data) != size + 1:
                    raise _failed(b"the object ends early")
                yield blob, data[:size]
        except BrokenPipeError:
            raise _failed(b"git ended early") from None
        finally:
            process.kill()
            process.communicate()

    def _run(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(
                self._words(*words), stdin=subprocess.DEVNULL, capture_output=True, env=_environment(), cwd="/",
                timeout=_SECONDS, check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as wrong:
            raise _failed(str(wrong).encode()) from None

    def _words(self, *words: str) -> list[str]:
        settings = (word for setting in _SETTINGS for word in ("-c", setting))
        return [str(self.program), "--no-replace-objects", "--no-optional-locks", "--literal-pathspecs", *settings,
                f"--git-dir={self.top / '.git'}", *words]  # fmt: skip


def open_repository(folder: Path, host: Host) -> Repository:
    """Open the repository that a physical folder lies in. UsageError when there is none, or no git.

    Only a repository that belongs to the caller or root counts, as for project files.
    """
    top = repository_root(folder)
    if top is None:
        message = f"`{folder}` is in no git repository of yours, so it has no revisions"
        raise UsageError(error("revision-no-repository", message, help="name folders: `./old ./new`"))
    try:
        # As an interpreter is found: never from the folder that is checked, never one that others can change.
        found = find_interpreter(
            Command(Starter.SHEBANG, "git"),
            search=host.environ.get("PATH", ""),
            home=host.home,
            refuse=(top,),
        )
    except SkillError:
        message = "`git` was not found, and a revision can't be read without it"
        raise UsageError(error("revision-no-git", message, help="install git, or name folders")) from None
    return Repository(top, found.path)


def extract(repository: Repository, tree: str, into: Path, paths: Sequence[str] = ()) -> None:
    """Write the files of a tree below a folder that is new and the caller's own.

    Names come from whoever made the revision: what climbs, is absolute, lies below a link or is a `.git` is
    refused. Links are made last, so that nothing is ever written through one. Modes keep the exec bit only.
    """
    blobs = repository.blobs(tree, paths)
    links = {blob.path for blob in blobs if blob.mode == _LINK}
    made: set[Path] = set()
    later: list[tuple[Path, bytes]] = []
    for blob, data in repository.contents(blobs):
        parts = blob.path.split("/")
        above = {"/".join(parts[:count]) for count in range(1, len(parts))}
        if (
            blob.path.startswith("/")
            or not {"", ".", ".."}.isdisjoint(parts)
            or above & links
            or ".git" in map(str.lower, parts)
        ):
            raise UsageError(
                error("revision-path", f"the revision holds `{blob.path}`, which no working tree can have")
            )
        target = into / blob.path
        if blob.mode == _LINK:
            later.append((target, data))
            continue
        if target.parent not in made:
            target.parent.mkdir(parents=True, exist_ok=True)
            made.add(target.parent)
        descriptor = os.open(
            target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
        )
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), 0o700 if blob.mode == _EXECUTABLE else 0o600)
    for target, data in later:
        target.parent.mkdir(parents=True, exist_ok=True)
        os.symlink(data, os.fsencode(target))  # noqa: PTH211 - bytes: a target need not be text


def _environment() -> dict[str, str]:
    return dict(_ENVIRONMENT)


def _failed(stderr: bytes) -> UsageError:
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    return UsageError(
        error(
            "revision-unreadable",
            f"git can't read that revision: {lines[-1] if lines else 'no reason given'}",
        )
    )
