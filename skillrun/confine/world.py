"""Level 2: namespaces, and a root that holds only what a plan names.

What does not depend on a plan is built ahead of it. The host's files stay reachable below the old root
until the plan has come and everything it grants was cloned by descriptor; then the old root goes.
"""

from __future__ import annotations

import fcntl
import os
import socket
import stat
import struct

from . import calls, landlock, mounts

TYPE_CHECKING = False  # importing typing would cost 3 ms of every start
if TYPE_CHECKING:
    from typing import Any

_NEWNS, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID = 0x00020000, 0x04000000, 0x08000000, 0x10000000, 0x20000000
_NEWCGROUP, _NEWNET = 0x02000000, 0x40000000
_INNER_UID = 1000  # for a caller who is root: as 0 inside, tar and npm would try to change owners
_BASES = ("/sys", "/mnt", "/media")  # covered by the new root while it is built: nothing granted lies there
_MOST_NODES = 100_000  # of /tmp and of /dev/shm: a folder takes kernel memory that no size counts
_PID_MAX = "/proc/sys/kernel/pid_max"
_ANY_ID = 4_194_304  # what it says in a new namespace: PID_MAX_LIMIT in <linux/threads.h>
_DENIED = ".denied"
_PROC_FILES = ("cpuinfo", "loadavg", "meminfo", "stat", "uptime", "version")
_PRIVATE = mounts.NOSUID | mounts.NODEV


def filled(frame: dict[str, Any], scratch: list[Any] | None) -> dict[str, Any]:
    """Put a run's scratch folder, [path, device, inode], where an empty path stands for it."""
    if scratch is None:
        return frame
    path, *identity = scratch

    def put(where: str, word: Any, *known: Any) -> list[Any]:
        return [where, word, *known] if where else [path, word, *identity, *known[2:]]

    return {
        **frame,
        "home": frame["home"] or path,
        "entries": [put(*entry) for entry in frame["entries"]],
        "rules": [put(*rule) for rule in frame["rules"]],
    }


def check_covers(entries: list[list[Any]]) -> None:
    """Check that what was covered some time ago, in a world that nobody was in, still is.

    The kernel takes a mount away when somebody outside unlinks what it is on, or renames another over it
    (detach_mounts in fs/namei.c). What lies there then was planned anew, by what it is; yet a file with a second name
    can be put back, and is the same.
    """
    hidden: list[str] = []
    for path, mode, device, inode, *_ in entries:
        if mode == "deny":
            hidden.append(f"{path}/")
        try:
            if mode == "ro":
                covered = bool(os.statvfs(path).f_flag & os.ST_RDONLY)
            elif mode != "rw":
                found = os.lstat(path)
                covered = (found.st_dev, found.st_ino) != (device, inode)
            else:
                continue  # a folder has one name; and of a file it is the mount that lets it be written
        except PermissionError:
            # What is above it is covered itself. Else somebody has closed it, and may open it again.
            covered = path.startswith(tuple(hidden))
        except (FileNotFoundError, NotADirectoryError):
            covered = mode != "ro"  # of what is above it nothing was granted
        if not covered:
            raise landlock.ChangedError(f"{path} was replaced after it was covered")


def flags(base: dict[str, Any]) -> int:
    """Return the clone flags of a world; with a network granted it stays in the host's."""
    spaces = _NEWNS | _NEWUTS | _NEWIPC | _NEWUSER | _NEWPID | _NEWCGROUP
    return spaces if base["network"] else spaces | _NEWNET


def map_ids(uid: int, gid: int) -> None:
    """Map the caller's ids, and no others, into the new user namespace.

    Before anything else: writing the maps needs /proc writable and this process dumpable.
    """
    inner_uid, inner_gid = (uid, gid) if uid else (_INNER_UID, _INNER_UID)
    for name, words in (
        ("setgroups", "deny"),  # without it an ordinary user may not write gid_map (user_namespaces(7))
        ("uid_map", f"{inner_uid} {uid} 1"),
        ("gid_map", f"{inner_gid} {gid} 1"),
    ):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(words)


def bound_ids(count: int) -> None:
    """Bound the process ids that this world can hold: its threads, and the dead that nobody has waited for, included.

    Where the kernel can't, only the watch counts, ten times a second and no threads: that is enough to be told what a run
    did, and not to keep it from taking the last ids of the machine meanwhile. From Linux 6.14 on each namespace has a
    setting of its own. Before, the file is the machine's, which a caller who is root can change: so it is left alone.
    """
    if not _has_ids_of_its_own(os.uname().release):
        return
    try:
        setting = os.open(_PID_MAX, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return  # a container may have /proc/sys read-only
    try:
        if int(os.read(setting, 32)) == _ANY_ID:
            os.pwrite(setting, str(count).encode(), 0)
    except (OSError, ValueError):
        pass  # EINVAL: more than the kernel has anyway
    finally:
        os.close(setting)


def _has_ids_of_its_own(release: str) -> bool:
    """Tell by the kernel's release whether a namespace has a `pid_max` of its own; not when it can't be told."""
    words = release.split(".")
    try:
        return (int(words[0]), int(words[1].partition("-")[0])) >= (6, 14)
    except (ValueError, IndexError):
        return False


class World:
    """The new root while it is built. Every path of it is relative: the current folder is its top."""

    def __init__(self, base: dict[str, Any]) -> None:
        """Build what every run needs: system paths, devices, /proc. The host's files stay reachable."""
        mounts.propagate(private=False)
        socket.sethostname("skillrun")
        if not base["network"]:
            _loopback_up()
        trees = [(path, mounts.clone_tree(path)) for path in base["places"] if os.path.lexists(path)]
        devices = [(path, mounts.clone_tree(path)) for path in base["devices"] if os.path.lexists(path)]
        self.base = next(path for path in _BASES if os.path.isdir(path))
        mounts.mount("tmpfs", self.base, _PRIVATE, "mode=0755,size=16m")
        os.chdir(self.base)
        self._own = {os.stat(".").st_dev}  # file systems of the world itself, where mount points may be made
        for path, target in base["links"]:
            self._link(path, target)
        for folder in ("dev", "dev/pts", "dev/shm", "etc", "proc", "tmp"):
            os.makedirs(folder, exist_ok=True)
        for name, target in (
            ("ptmx", "pts/ptmx"),
            ("fd", "/proc/self/fd"),
            ("stdin", "/proc/self/fd/0"),
            ("stdout", "/proc/self/fd/1"),
            ("stderr", "/proc/self/fd/2"),
        ):
            os.symlink(target, f"dev/{name}")
        for path, tree in trees:
            self._place(path, tree, mounts.RDONLY | _PRIVATE)
        for path, tree in devices:
            # A read-only mount lets a device be written and keeps its mode and owner, which root could change.
            self._place(path, tree, mounts.NOSUID | mounts.NOEXEC | mounts.RDONLY)
        mounts.mount("devpts", "dev/pts", mounts.NOSUID | mounts.NOEXEC, "newinstance,ptmxmode=0666,mode=620")
        self.fresh_proc = self._mount_proc()

    def furnish(self, frame: dict[str, Any]) -> None:
        """Add what a frame grants and cover what it keeps, then enter the root for good."""
        mounts.propagate(private=True)
        entries = frame["entries"]
        # All clones are taken before anything is covered, each compared with what was planned: the
        # path may mean something else by now.
        trees = [self._take(entry) for entry in entries]
        for name in ("tmp", "dev/shm"):
            mounts.mount("tmpfs", name, _PRIVATE, f"mode=1777,size={frame['tmpfs']},nr_inodes={_MOST_NODES}")
            self._own.add(os.stat(name).st_dev)
        for path, target in frame["links"]:
            self._link(path, target)
        covers = self._bare(frame["cwd"])
        os.close(os.open(_DENIED, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0))
        covers += self._fill(entries, trees)
        os.unlink(_DENIED)
        for cover in covers:
            mounts.seal(cover)
        self._people(frame["user"], frame["home"])
        mounts.enter_root()
        for path, mode, *_ in entries:
            if mode == "rw" and os.statvfs(path).f_flag & os.ST_RDONLY:
                raise OSError(30, f"{path} was granted for writing and is mounted read-only")

    def _fill(self, entries: list[list[Any]], trees: list[int]) -> list[str]:
        """Put what was taken in its place; return folders to be sealed once everything below is there."""
        covers = []
        for (path, mode, *_), tree in zip(entries, trees, strict=True):
            if mode == "cover":
                os.close(tree)
                covers.append(self._empty(path))
            elif mode == "deny":
                self._deny(path, tree)
            elif mode == "link":
                os.close(tree)
            else:
                self._place(path, tree, (mounts.RDONLY | _PRIVATE) if mode == "ro" else _PRIVATE)
        for path, mode, *known in entries:
            if mode == "link":  # once all that keeps their ends from the script is in place
                self._cover_link(path, known[3:])
        return covers

    def _bare(self, cwd: list[Any]) -> list[str]:
        """Make the folder that the script starts in where nothing of it was granted; return it to be sealed.

        In /tmp it could be written otherwise, and what was written would vanish without a word.
        """
        path, device, inode = cwd[0], cwd[1], cwd[2]
        return [self._empty(path)] if (device, inode) == landlock.ANY else []

    def _empty(self, path: str) -> str:
        """Put an empty folder at a path; return it to be sealed once everything below is in place."""
        self._point(path, folder=True)
        mounts.mount("tmpfs", f".{path}", _PRIVATE, "mode=0755,size=1m")
        self._own.add(os.stat(f".{path}").st_dev)
        return f".{path}"

    def _take(self, entry: list[Any]) -> int:
        """Clone the tree of an entry after checking what lies there now."""
        path, mode, device, inode, *_ = entry
        if path == self.base or path.startswith(self.base + "/"):
            raise OSError(22, f"{path} can't be granted: the new root is built there")
        if mode in {"deny", "link", "cover"}:
            held = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        else:
            held = mounts.clone_tree(path)
        found = os.fstat(held)
        if (found.st_dev, found.st_ino) != (device, inode):
            raise landlock.ChangedError(f"{path} was replaced after the run was planned")
        return held

    def _place(self, path: str, tree: int, attributes: int) -> None:
        """Attach a tree at its own path in the new root."""
        mounts.change(tree, attributes)
        self._point(path, folder=stat.S_ISDIR(os.fstat(tree).st_mode))
        mounts.attach(tree, "." + path)

    def _deny(self, path: str, held: int) -> None:
        """Cover a path with something that can be neither read nor written, by its owner neither.

        A link is covered as itself: move_mount does not follow the last part.
        """
        folder = stat.S_ISDIR(os.fstat(held).st_mode)
        os.close(held)
        try:
            os.lstat("." + path)
        except (FileNotFoundError, NotADirectoryError):
            return  # nothing above it was granted, so it is not there to be covered; what can't be told is no such thing
        if folder:
            mounts.mount(
                "tmpfs", "." + path, mounts.RDONLY | _PRIVATE | mounts.NOEXEC, "mode=000,nr_inodes=2"
            )
            return
        # A clone, because the file is unlinked.
        self._cover(path, mounts.clone_tree(_DENIED, recursive=False))

    def _cover_link(self, path: str, end: list[Any]) -> None:
        """Cover a link with the file that it leads to, as that is in the new root: granted, and not denied.

        A folder can't be put over it, so that is not reached this way.
        """
        target, device, inode = end
        cover = mounts.clone_tree("." + target, recursive=False)
        found = os.fstat(cover)  # of what was cloned, whatever the path leads to by now
        if (found.st_dev, found.st_ino) != (device, inode) or not stat.S_ISREG(found.st_mode):
            raise landlock.ChangedError(f"{target} was replaced after the run was planned")
        self._cover(path, cover)

    def _cover(self, path: str, cover: int) -> None:
        """Put a cloned file over a path, read-only, because its owner may change its mode."""
        mounts.change(cover, mounts.RDONLY | _PRIVATE)
        mounts.attach(cover, "." + path)

    def _point(self, path: str, *, folder: bool) -> None:
        """Make the mount point of a path, but only in the new root itself, never inside a granted tree."""
        here = "."
        names = path.strip("/").split("/")
        for depth, name in enumerate(names, 1):
            above, here = here, f"{here}/{name}"
            try:
                if stat.S_ISLNK(os.lstat(here).st_mode):
                    raise OSError(40, f"{path} leads through a link that was not there before")
            except FileNotFoundError:
                pass
            else:
                continue
            if os.stat(above).st_dev not in self._own:
                raise OSError(2, f"{path} is gone")
            if depth < len(names) or folder:
                os.mkdir(here, 0o755)
            else:
                os.close(os.open(here, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644))

    def _link(self, path: str, target: str) -> None:
        """Recreate a link node where the new root has nothing of that name."""
        parent = os.path.dirname(path)
        if parent != "/":
            self._point(parent, folder=True)
        if os.stat("." + parent).st_dev in self._own and not os.path.lexists("." + path):
            os.symlink(target, "." + path)

    def _people(self, name: str, home: str) -> None:
        """Write the two lines that give the caller's ids a name; the host's other names stay unknown."""
        known = "".join(c for c in name if c.isalnum() or c in "-_.")[:32] or "user"
        folder = home if home.isprintable() and ":" not in home else "/"
        uid, gid = os.getuid(), os.getgid()
        lines = {
            "passwd": f"root:x:0:0::/:/bin/sh\n{known}:x:{uid}:{gid}::{folder}:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n",
            "group": f"root:x:0:\n{known}:x:{gid}:\nnogroup:x:65534:\n",
        }
        for file_name, words in lines.items():
            made = os.open(f"etc/{file_name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            os.write(made, words.encode("ascii", "replace"))
            os.close(made)

    def _mount_proc(self) -> bool:
        """Mount a fresh /proc; where the kernel refuses that, bind the outer one and return False.

        It refuses when part of the outer /proc is covered, as in most containers. Landlock then opens a
        few harmless files of it only.
        """
        try:
            # Read-only: for a caller who is root the settings below /proc/sys ask for no capability, only for
            # the user id, which is root's own outside (proc_sys_permission in fs/proc/proc_sysctl.c).
            mounts.mount("proc", "proc", _PRIVATE | mounts.NOEXEC | mounts.RDONLY)
        except OSError:
            tree = mounts.clone_tree("/proc")
            mounts.change(tree, _PRIVATE | mounts.NOEXEC | mounts.RDONLY)
            mounts.attach(tree, "proc")
            return False
        return True

    def system_rules(self, base: dict[str, Any]) -> list[list[Any]]:
        """Give the Landlock rules for what is not a plan's own, by the paths of the new root."""
        read, write = base["rights"]["read"], base["rights"]["write"]
        own = [["/tmp", write], ["/dev", write | base["rights"]["device"]]]  # noqa: S108 - the run's own
        if self.fresh_proc:
            return [["/", read], *own]
        tops = [[f"/{name}", read] for name in os.listdir("/") if name != "proc"]
        return [*tops, *([f"/proc/{name}", read] for name in _PROC_FILES), *own]


def _loopback_up() -> None:
    """Bring the run's own loopback up: it leads nowhere, and many programs talk to themselves over it."""
    up_and_running = 0x41  # IFF_UP | IFF_RUNNING
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh22x", b"lo", up_and_running))  # SIOCSIFFLAGS


def hide() -> None:
    """Make init's memory, environment and descriptors unreadable for the script, which has the same user."""
    calls.prctl(calls.PR_SET_DUMPABLE, 0)
