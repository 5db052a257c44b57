"""Attacks that read or list what was not granted."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from attack import ATTEMPT, SUITE_IS_ROOT, USER_ID, Scene, blocks_reading

if TYPE_CHECKING:
    from collections.abc import Iterator

PRINT = "print(open(args[0]).read())"
ROOT_ONLY = pytest.mark.skipif(not SUITE_IS_ROOT, reason="the file of the attack is root's")


def test_blocks_reading_ssh_keys(scene: Scene) -> None:
    """A key in the home folder is not readable by its path."""
    key = scene.home / ".ssh/id_ed25519"
    blocks_reading(scene, PRINT, scene.secret(key), key)


def test_blocks_listing_the_home_folder(scene: Scene) -> None:
    """The names of the files in a home folder are not listed."""
    name = secrets.token_hex(12)
    scene.file(scene.home / name)
    blocks_reading(scene, "print(os.listdir(args[0]))", name, scene.home)


def test_blocks_reading_the_password_hashes(scene: Scene) -> None:
    """Root can't read /etc/shadow; nor can root read it through another of its names."""
    if scene.party.uid != 0:
        pytest.skip("only root can read /etc/shadow, so for anybody else the control can't succeed")
    text = Path("/etc/shadow").read_text()
    blocks_reading(scene, PRINT, text.splitlines()[0], "/etc/shadow")


def test_blocks_reading_host_files_in_etc(scene: Scene) -> None:
    """A file of /etc that no run needs is not readable, though everybody may read it."""
    blocks_reading(scene, "print('first', open(args[0]).read()[:1] != '')", "first True", "/etc/fstab")


@pytest.mark.level(1)
def test_blocks_listing_the_root_folder(scene: Scene) -> None:
    """`/` is not listed."""
    blocks_reading(scene, "print(os.listdir('/'))", "'etc'")


def test_blocks_reading_through_a_link_made_in_a_write_root(scene: Scene) -> None:
    """A link that the script makes in its own folder leads nowhere it could not go without."""
    target = scene.outside / "secret.txt"
    body = "name = 'link%d' % os.getpid(); os.symlink(args[0], name); print(open(name).read())"
    blocks_reading(scene, body, scene.secret(target), target)


def test_blocks_reading_through_a_hard_link_made_in_a_write_root(scene: Scene) -> None:
    """A file outside gets no second name in the script's own folder."""
    target = scene.outside / "secret.txt"
    body = "os.link(args[0], 'link.txt'); print(open('link.txt').read())"
    blocks_reading(scene, body, scene.secret(target), target)


def test_blocks_reading_through_a_rename_into_a_write_root(scene: Scene) -> None:
    """A file outside can't be moved in to be read there."""
    target = scene.outside / "secret.txt"
    body = "os.rename(args[0], 'moved.txt'); print(open('moved.txt').read())"
    blocks_reading(scene, body, scene.secret(target), target)


def test_blocks_reading_through_an_exchange_of_folders(scene: Scene) -> None:
    """RENAME_EXCHANGE of a folder of the script's with one outside does not bring its files in."""
    target = scene.outside / "deep/secret.txt"
    body = """
mine = 'mine%d' % os.getpid()
os.mkdir(mine)
if libc.renameat2(-100, args[0].encode(), -100, mine.encode(), 2) == 0:
    print(open(mine + '/secret.txt').read())
"""
    blocks_reading(scene, body, scene.secret(target), target.parent)


def test_blocks_reading_through_proc_self_root(scene: Scene) -> None:
    """/proc/self/root is another name of `/`."""
    target = scene.outside / "secret.txt"
    blocks_reading(scene, "print(open('/proc/self/root' + args[0]).read())", scene.secret(target), target)


def test_blocks_reading_upwards_from_the_working_folder(scene: Scene) -> None:
    """The open working folder is no way up: `..` is looked at like any other path."""
    target = scene.outside / "secret.txt"
    body = "print(open('../outside/secret.txt').read())"
    blocks_reading(scene, body, scene.secret(target))


def test_blocks_reading_after_changing_the_folder(scene: Scene) -> None:
    """Chdir is not looked at by Landlock, and gives nothing to read."""
    target = scene.outside / "secret.txt"
    body = "os.chdir(args[0]); print(open('secret.txt').read(), os.listdir('.'))"
    blocks_reading(scene, body, scene.secret(target), target.parent)


def test_blocks_reading_from_a_path_only_descriptor(scene: Scene) -> None:
    """A descriptor opened with O_PATH, which needs no right, does not become a readable one."""
    target = scene.outside / "secret.txt"
    body = """
folder = os.open(os.path.dirname(args[0]), os.O_PATH)
print(os.read(os.open('secret.txt', os.O_RDONLY, dir_fd=folder), 100))
"""
    blocks_reading(scene, body, scene.secret(target), target)


def test_blocks_reopening_a_path_only_descriptor_through_proc(scene: Scene) -> None:
    """/proc/self/fd does not turn an O_PATH descriptor into a readable one."""
    target = scene.outside / "secret.txt"
    body = """
node = os.open(args[0], os.O_PATH)
print(open('/proc/self/fd/%d' % node).read())
"""
    blocks_reading(scene, body, scene.secret(target), target)


def test_blocks_openat2(scene: Scene) -> None:
    """openat2 opens nothing outside either."""
    target = scene.outside / "secret.txt"
    body = """
how = struct.pack('QQQ', os.O_RDONLY, 0, 0)
print(os.read(call('openat2', -100, args[0].encode(), how, 24), 100))
"""
    blocks_reading(scene, body, scene.secret(target), target)


def test_blocks_opening_by_file_handle(scene: Scene) -> None:
    """A file handle, which is opened without walking a path, can't be made or opened."""
    target = scene.outside / "secret.txt"
    body = """
handle = ctypes.create_string_buffer(struct.pack('Ii', 128, 0) + bytes(128))
mount = ctypes.c_int()
call('name_to_handle_at', -100, args[0].encode(), handle, ctypes.byref(mount), 0)
print('HANDLE', flush=True)
print(os.read(call('open_by_handle_at', os.open('/usr', os.O_RDONLY), handle, os.O_RDONLY), 100))
"""
    token = scene.secret(target)
    wanted = (
        token if scene.party.uid == 0 else "HANDLE"
    )  # opening one needs a capability, making one does not
    run = blocks_reading(scene, body, wanted, target)
    assert "HANDLE" not in run.out


def test_blocks_a_program_of_ones_own_in_memory(scene: Scene) -> None:
    """A program executed from memory (memfd and fexecve), or from a file without a name, is as confined as the script."""
    target = scene.outside / "secret.txt"
    body = """
try:
    program = os.memfd_create('program', 0)
except OSError:
    program = os.open(os.environ['TMPDIR'], os.O_TMPFILE | os.O_RDWR, 0o700)
os.write(program, open('/bin/cat', 'rb').read())
program, writing = os.open('/proc/self/fd/%d' % program, os.O_RDONLY), program
os.close(writing)
if os.fork() == 0:
    os.execve(program, ['cat', args[0]], {})
os.wait()
"""
    blocks_reading(scene, body, scene.secret(target), target)


def test_blocks_a_program_started_by_the_loader(scene: Scene) -> None:
    """A program started through the dynamic loader is as confined as the script."""
    target = scene.outside / "secret.txt"
    body = """
loader = next(p for p in ('/lib64/ld-linux-x86-64.so.2', '/lib/ld-linux-aarch64.so.1') if os.path.exists(p))
subprocess.run([loader, '/bin/cat', args[0]])
"""
    blocks_reading(scene, body, scene.secret(target), target)


def test_blocks_reading_in_another_thread(scene: Scene) -> None:
    """A thread and a child of the script have no more rights than it."""
    target = scene.outside / "secret.txt"
    body = """
import threading
thread = threading.Thread(target=lambda: print(open(args[0]).read())); thread.start(); thread.join()
"""
    blocks_reading(scene, body, scene.secret(target), target)


def test_blocks_a_set_id_program_from_lending_its_rights(scene: Scene) -> None:
    """A set-id program gives a confined user nothing: it runs without its owner's rights."""
    if not scene.party.other:
        pytest.skip("only root can make root's set-id program, and only another user can want it")
    program = scene.base.parent / "setid-id"
    shutil.copy(shutil.which("id") or "/usr/bin/id", program)
    program.chmod(0o4755)
    folder = scene.folder(scene.workspace / "bin")
    shutil.copy(program, folder / "id")
    (folder / "id").chmod(0o4755)
    assert (folder / "id").stat().st_uid == 0
    try:
        blocks_reading(
            scene, "subprocess.run(['bin/id', '-u', '-r']); subprocess.run(['bin/id'])", "euid=0(root)"
        )
    finally:
        program.unlink()


@pytest.mark.parametrize("name", [".env", ".ssh/id_rsa", ".netrc", ".aws/credentials", ".git-credentials"])
def test_blocks_shipped_secrets_inside_a_granted_workspace(scene: Scene, name: str) -> None:
    """A name of `secrets.yaml` is not readable though all around it is."""
    path = scene.workspace / name
    scene.file(scene.workspace / "plain.txt", "plain\n")
    run = blocks_reading(scene, f"print(open('plain.txt').read())\n{PRINT}", scene.secret(path), path)
    assert "plain\n" in run.out


def test_blocks_a_denied_file_through_a_link(scene: Scene) -> None:
    """A link made next to a denied file does not reach it."""
    scene.folder(scene.workspace / "sub")
    token = scene.secret(scene.workspace / ".env")
    blocks_reading(
        scene, "name = 'sub/%d' % os.getpid(); os.symlink('../.env', name); print(open(name).read())", token
    )


@pytest.mark.parametrize("name", ["CLAUDE.md", ".bashrc", ".envrc", ".git/config"])
def test_blocks_what_a_protected_name_leads_to(scene: Scene, name: str) -> None:
    """A link with a name that is kept from being written is covered, and never with a file that the run may not read.

    A run before may have made it, or a project that was cloned brings it along.
    """
    target = scene.outside / "secret.txt"
    token = scene.secret(target)
    scene.link(scene.workspace / name, target)
    blocks_reading(scene, PRINT, token, scene.workspace / name)


@pytest.mark.parametrize("name", ["CLAUDE.md", ".bashrc"])
def test_blocks_a_denied_file_that_a_protected_name_leads_to(scene: Scene, name: str) -> None:
    """Nor with one inside the granted folder that is denied there."""
    path = scene.workspace / ".env"
    token = scene.secret(path)
    scene.link(scene.workspace / name, ".env")
    body = """
for name in args:
    try: print(open(name).read())
    except OSError as failure: print(failure)
"""
    blocks_reading(scene, body, token, scene.workspace / name, path)  # by that name, and by its own


def test_blocks_a_denied_file_through_a_hard_link(scene: Scene) -> None:
    """A denied file gets no second name."""
    scene.folder(scene.workspace / "sub")
    token = scene.secret(scene.workspace / ".env")
    blocks_reading(scene, "os.link('.env', 'sub/link'); print(open('sub/link').read())", token)


def test_blocks_a_denied_file_through_a_rename_of_itself(scene: Scene) -> None:
    """A denied file can't be moved to where reading is allowed."""
    scene.folder(scene.workspace / "sub")
    token = scene.secret(scene.workspace / ".env")
    blocks_reading(scene, "os.rename('.env', 'sub/env'); print(open('sub/env').read())", token)


def test_blocks_a_denied_file_through_a_rename_of_its_parent(scene: Scene) -> None:
    """The folder above a denied file can't be moved, so its name can't be made another."""
    token = scene.secret(scene.workspace / "conf/app/secret.txt")
    scene.ceiling = scene.file(
        scene.home / "ceiling.yaml",
        'sandbox:\n  fs_read: ["${workspace}"]\n  fs_write: ["${workspace}"]\n  deny: [conf/app/secret.txt]\n',
    )
    body = """
for old, new, there in (('conf/app', 'conf/b', 'conf/b'), ('conf', 'c', 'c/app')):
    try: os.rename(old, new); print(open(there + '/secret.txt').read())
    except OSError as failure: print(failure)
"""
    blocks_reading(scene, body, token)


def test_blocks_a_denied_file_that_is_a_link(scene: Scene) -> None:
    """A denied name that is a link denies what it leads to as well."""
    token = scene.secret(scene.workspace / "config/production.env")
    scene.link(scene.workspace / ".env", "config/production.env")
    body = "print(open('config/production.env').read()); print(open('.env').read())"
    blocks_reading(scene, body, token)


def test_names_a_denied_file_with_an_older_second_name(scene: Scene) -> None:
    """A second name that a denied file had before the run: not readable, or at least reported."""
    token = scene.secret(scene.workspace / ".env")
    os.link(scene.workspace / ".env", scene.workspace / "copy.txt")
    scene.script("print(open('copy.txt').read()); print(open('.env').read())")
    run = scene.confined()
    assert run.attempted
    reported = any("copy.txt" in one["message"] or ".env" in one["message"] for one in run.told["warnings"])
    assert token not in run.said or reported, "the content of a denied file was readable, and nothing says so"
    assert token in scene.plainly().said


@pytest.mark.parametrize("spelled", ["private", "private/", "./private", "${workspace}/private"])
def test_blocks_what_the_ceiling_denies(scene: Scene, spelled: str) -> None:
    """`deny` of a ceiling holds under a granted root however it is spelled, also for reading the names."""
    path = scene.workspace / "private/notes.txt"
    scene.ceiling = scene.file(
        scene.home / "ceiling.yaml",
        f'sandbox:\n  fs_read: ["${{workspace}}"]\n  fs_write: ["${{workspace}}"]\n  deny: ["{spelled}"]\n',
    )
    body = (
        "print(os.path.exists('.'))\ntry: print(os.listdir('private'))\nfinally: print(open(args[0]).read())"
    )
    run = blocks_reading(scene, body, scene.secret(path), path)
    assert "notes.txt']" not in run.said


@pytest.mark.parametrize("grant", ["read", "none"])
def test_blocks_reading_a_workspace_that_lies_below_usr(scene: Scene, grant: str) -> None:
    """/usr/src is a permitted place to work: what every run may read of /usr does not open what lies there.

    Both a workspace of which nothing was granted and a secret inside a granted one.
    """
    if not os.access("/usr/src", os.W_OK):
        pytest.skip("this user can't make a workspace in /usr/src")
    top = Path(tempfile.mkdtemp(prefix="skillrun-escape-", dir="/usr/src"))
    try:
        top.chmod(0o755)
        (top / "app").mkdir()
        scene.workspace = scene.own(top / "app")
        file = scene.workspace / (".env" if grant == "read" else "notes.txt")
        token = secrets.token_hex(12)
        file.write_text(token)
        scene.own(file)
        front = 'fs_read: ["."]' if grant == "read" else "timeout: 5"
        blocks_reading(scene, PRINT, token, file, front=front)
    finally:
        shutil.rmtree(top)


def test_blocks_denied_paths_below_usr(scene: Scene) -> None:
    """What the operator denies inside a granted root is denied, also where the root lies in /usr."""
    if not os.access("/usr/src", os.W_OK):
        pytest.skip("this user can't make a folder in /usr/src")
    top = Path(tempfile.mkdtemp(prefix="skillrun-escape-", dir="/usr/src"))
    try:
        top.chmod(0o755)
        token = secrets.token_hex(12)
        (top / "key.txt").write_text(token)
        scene.ceiling = scene.file(
            scene.home / "ceiling.yaml", f'sandbox:\n  fs_read: ["{top}"]\n  deny: ["{top}/key.txt"]\n'
        )
        blocks_reading(scene, PRINT, token, top / "key.txt", front=f'fs_read: ["{top}"]')
    finally:
        shutil.rmtree(top)


def test_blocks_reading_another_skill_of_the_root(scene: Scene) -> None:
    """A skill reads its own folder, not its neighbours'."""
    path = scene.skills / "other/data.txt"
    blocks_reading(scene, PRINT, scene.secret(path), path)


def test_blocks_reading_files_next_to_a_granted_file(scene: Scene) -> None:
    """A grant of one file is a grant of that file."""
    scene.file(scene.workspace / "conf.json", "{}")
    path = scene.workspace / "conf.json.bak"
    run = blocks_reading(
        scene,
        f"print('given', open('conf.json').read())\n{PRINT}",
        scene.secret(path),
        path,
        front='fs_read: ["conf.json"]',
    )
    assert "given {}" in run.out


def test_blocks_a_folder_swapped_for_a_link_while_the_run_starts(scene: Scene) -> None:
    """A granted path whose parent becomes a link after it was compared is refused, not followed (law 5).

    Another confined run with write access to the workspace can do this at any moment.
    """
    token = scene.secret(scene.outside / "data/secret.txt")
    scene.file(scene.workspace / "sub/data/secret.txt", "harmless\n")
    scene.script("print(open('sub/data/secret.txt').read())", front='fs_read: ["sub/data"]')
    run = scene.confined(before_survey=[str(scene.workspace / "sub"), str(scene.outside)])
    assert token not in run.said, "the run followed a link that was made after its grant was decided"
    assert run.told.get("termination") != "exited" or run.code != 0
    assert token in scene.plainly().out


def test_blocks_the_skill_folder_swapped_for_a_link_while_the_run_starts(scene: Scene) -> None:
    """The folder above a skill that becomes a link after planning does not open another folder."""
    token = scene.secret(scene.outside / "attack/secret.txt")
    path = scene.script("print(open(os.environ['SKILL_DIR'] + '/secret.txt').read())")
    scene.file(scene.outside / "attack/scripts/attack.py", path.read_text(), 0o700)
    scene.file(scene.outside / "attack/SKILL.md", (scene.skills / "attack/SKILL.md").read_text())
    run = scene.confined(before_survey=[str(scene.skills), str(scene.outside)])
    assert token not in run.said
    assert ATTEMPT not in run.out, "another script was started than the one that was planned"


def test_blocks_a_granted_folder_swapped_for_a_link_after_planning(scene: Scene) -> None:
    """What is opened at the start is compared with what was planned: another folder is not taken instead (law 5)."""
    token = scene.secret(scene.outside / "secret.txt")
    scene.file(scene.workspace / "data/secret.txt", "harmless\n")
    scene.script("print(open('data/secret.txt').read())", front='fs_read: ["data"]')
    run = scene.confined(before_start=[str(scene.workspace / "data"), str(scene.outside)])
    assert token not in run.said
    assert run.told["termination"] == "failed_to_start"
    assert run.told["error"]["rule"] == "changed-before-start"
    assert token in scene.plainly().out


def test_blocks_the_working_folder_swapped_after_planning(scene: Scene) -> None:
    """The folder to start in is the one that was planned, though nothing of it was granted (law 5)."""
    scene.folder(scene.outside / "other")
    scene.script("print(os.path.samefile('.', args[0]))", front="timeout: 5")
    run = scene.confined(
        scene.outside / "other", before_start=[str(scene.workspace), str(scene.outside / "other")]
    )
    assert "True" not in run.out


def test_blocks_a_script_swapped_after_planning(scene: Scene) -> None:
    """The script that is started is the one that was planned, by inode and by content (DESIGN 9)."""
    scene.script("print('planned')")
    other = scene.file(scene.outside / "other.py", scene.path.read_text().replace("planned", "other"), 0o700)
    run = scene.confined(before_start=[str(scene.path), str(other)])
    assert "other" not in run.out
    assert run.told["termination"] == "failed_to_start"
    assert "other" in scene.plainly().out


@pytest.fixture
def shared_file(scene: Scene) -> Iterator[Path]:
    """Give a file in /dev/shm, where every process of this user can find it."""
    path = Path("/dev/shm") / f"skillrun-escape-{secrets.token_hex(6)}"
    path.touch(0o600)
    scene.own(path)
    yield path
    path.unlink(missing_ok=True)


def test_blocks_reading_shared_memory_files(scene: Scene, shared_file: Path) -> None:
    """/dev/shm belongs to other programs."""
    token = secrets.token_hex(12)
    shared_file.write_text(token)
    blocks_reading(scene, PRINT, token, shared_file)


def test_blocks_reading_the_temporary_folder_of_everybody(scene: Scene) -> None:
    """/tmp belongs to other programs too."""
    path = Path("/tmp") / f"skillrun-escape-{secrets.token_hex(6)}"
    token = secrets.token_hex(12)
    path.write_text(token)
    path.chmod(0o644)
    try:
        blocks_reading(scene, f"{PRINT}", token, path)
    finally:
        path.unlink()


@pytest.mark.level(1)
@ROOT_ONLY
def test_root_half_and_user_half_are_different_users(scene: Scene) -> None:
    """The two halves of this suite really run as who they say."""
    scene.script("print('uid', os.getuid(), os.geteuid())")
    assert f"uid {scene.party.uid} {scene.party.uid}\n" in scene.confined().out
    assert scene.party.uid in {0, USER_ID}
