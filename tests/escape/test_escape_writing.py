"""Attacks that change what was not granted: contents, names, modes, owners, times, attributes."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from pathlib import Path

import pytest
from attack import Scene, State, blocks_change

WRITE = "open(args[0], 'w').write('changed')"
OVER = """
new = args[0] + '.new' if not args[1:] else args[1]
open(new, 'w').write('changed'); os.replace(new, args[0])
"""
PROTECTED = [
    ".git/hooks/pre-commit",
    ".git/config",
    ".gitattributes",
    ".githooks/pre-push",
    ".husky/pre-commit",
    ".envrc",
    ".vscode/tasks.json",
    ".claude/settings.json",
    ".mcp.json",
    "CLAUDE.md",
    "AGENTS.md",
    "skillrun.yaml",
    "skillrun.lock",
]
START_FILES = [
    ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin",
    ".config/fish/config.fish",
]  # fmt: skip


def harmless(name: str) -> str:
    """Return a text that makes a configuration file of this name valid."""
    return "sandbox: {timeout: 50}\n" if name == "skillrun.yaml" else "as it was\n"


def test_blocks_writing_a_file_outside(scene: Scene) -> None:
    """A file outside keeps its content."""
    blocks_change(scene, WRITE, scene.file(scene.outside / "file.txt"))


def test_blocks_making_a_file_outside(scene: Scene) -> None:
    """No file appears outside."""
    blocks_change(scene, "open(args[0] + '/new', 'w')", scene.outside, scene.outside)


def test_blocks_making_a_folder_outside(scene: Scene) -> None:
    """No folder appears outside."""
    blocks_change(scene, "os.mkdir(args[0] + '/new')", scene.outside, scene.outside)


def test_blocks_making_links_outside(scene: Scene) -> None:
    """No link of either kind appears outside."""
    body = """
open('mine', 'w')
for make in (os.symlink, os.link):
    try: make('mine', args[0] + '/' + make.__name__)
    except OSError as failure: print(failure)
"""
    blocks_change(scene, body, scene.outside, scene.outside)


def test_blocks_making_nodes_outside(scene: Scene) -> None:
    """No pipe and no socket appears outside."""
    body = """
for kind in (stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFREG):
    try: os.mknod(args[0] + '/%x' % kind, kind | 0o600)
    except OSError as failure: print(failure)
"""
    blocks_change(scene, body, scene.outside, scene.outside)


def test_blocks_removing_a_file_outside(scene: Scene) -> None:
    """A file outside is not unlinked."""
    blocks_change(scene, "os.unlink(args[0])", scene.file(scene.outside / "file.txt"))


def test_blocks_moving_a_file_out(scene: Scene) -> None:
    """A file of the script's is not moved over one outside."""
    blocks_change(scene, "open('n', 'w'); os.replace('n', args[0])", scene.file(scene.outside / "file.txt"))


def test_blocks_truncating_a_file_outside(scene: Scene) -> None:
    """truncate, which opens nothing, empties no file outside."""
    blocks_change(scene, "os.truncate(args[0], 0)", scene.file(scene.outside / "file.txt"))


def test_blocks_truncating_a_file_granted_for_reading(scene: Scene) -> None:
    """Opening for reading with O_TRUNC does not empty a file that may be read."""
    target = scene.file(scene.workspace / "file.txt")
    body = "os.open(args[0], os.O_RDONLY | os.O_TRUNC)"
    blocks_change(scene, body, target, front='fs_read: ["."]')


def test_blocks_writing_a_file_granted_for_reading(scene: Scene) -> None:
    """A read grant is no write grant, through a link of the script's own neither."""
    target = scene.file(scene.workspace / "in/file.txt")
    scene.folder(scene.workspace / "out")
    body = "os.symlink(args[0], 'out/%d' % os.getpid()); open('out/%d' % os.getpid(), 'w').write('changed')"
    blocks_change(scene, body, target, front='fs_read: ["in"]\nfs_write: ["out"]')


def test_blocks_a_second_name_that_is_writable(scene: Scene) -> None:
    """A file that may be read gets no name in a folder that may be written."""
    target = scene.file(scene.workspace / "in/file.txt")
    scene.folder(scene.workspace / "out")
    body = "os.link(args[0], 'out/%d' % os.getpid()); open('out/%d' % os.getpid(), 'w').write('changed')"
    blocks_change(scene, body, target, front='fs_read: ["in"]\nfs_write: ["out"]')


def test_blocks_moving_a_read_only_file_into_a_write_root(scene: Scene) -> None:
    """A file that may be read can't be moved to where it may be written."""
    target = scene.file(scene.workspace / "in/file.txt")
    scene.folder(scene.workspace / "out")
    body = "os.rename(args[0], 'out/moved')"
    blocks_change(scene, body, target, front='fs_read: ["in"]\nfs_write: ["out"]')


def test_blocks_writing_through_a_link_made_in_a_write_root(scene: Scene) -> None:
    """A link to a file outside, made by the script, does not open it for writing."""
    body = "os.symlink(args[0], 'l%d' % os.getpid()); open('l%d' % os.getpid(), 'w').write('changed')"
    blocks_change(scene, body, scene.file(scene.outside / "file.txt"))


def test_blocks_making_a_file_through_a_dangling_link_of_the_script(scene: Scene) -> None:
    """A link to nothing, made by the script, makes nothing outside (C-13)."""
    body = "os.symlink(args[0], 'l%d' % os.getpid()); open('l%d' % os.getpid(), 'w').write('changed')"
    blocks_change(scene, body, scene.outside / "new.txt")


def test_blocks_making_a_file_through_a_dangling_link_of_the_skill(scene: Scene) -> None:
    """A write grant whose path is a link to nothing is refused and makes nothing outside (C-13)."""
    target = scene.outside / "new.txt"
    scene.link(scene.workspace / "out", target)
    scene.script("open('out', 'w').write('changed')", front='fs_write: ["./out"]')
    run = scene.confined()
    assert run.attempted
    assert not os.path.lexists(target)
    assert run.told["write"] == []
    assert run.told["refused"][0][0] == "./out"
    scene.plainly()
    assert target.read_text() == "changed"


@pytest.mark.parametrize("how", ["chmod", "fchmod", "fchmodat", "fchmodat2"])
def test_blocks_changing_the_mode_of_a_file_outside(scene: Scene, how: str) -> None:
    """Landlock has no right for modes: the filter keeps every call that changes one without effect."""
    body = {
        "chmod": "os.chmod(args[0], 0o777)",
        "fchmod": "os.fchmod(os.open(args[0], os.O_RDONLY), 0o777)",
        "fchmodat": "libc.fchmodat(-100, args[0].encode(), 0o777, 0)",
        "fchmodat2": "call('fchmodat2', -100, args[0].encode(), 0o777, 0)",
    }[how]
    # A file that may be read: only of such a one can the script have a descriptor.
    blocks_change(scene, body, scene.file(scene.workspace / "file.txt"), front='fs_read: ["."]')


def test_blocks_changing_the_owner_of_a_file_outside(scene: Scene) -> None:
    """Owners and groups stay: for root any other, for a user the one it may give."""
    body = "os.chown(args[0], -1, 54321 if os.getuid() == 0 else os.getgid())"
    target = scene.file(scene.outside / "file.txt")
    if scene.party.uid != 0:
        # A user may give a file its own group back; that is a change where the group is another.
        if not scene.party.other:
            pytest.skip("an ordinary user has no file of another group to change")
        os.chown(target, scene.party.uid, 54321)
    blocks_change(scene, body, target)


@pytest.mark.parametrize("how", ["utime", "futimens"])
def test_blocks_changing_the_times_of_a_file_outside(scene: Scene, how: str) -> None:
    """Times stay as they are."""
    body = {
        "utime": "os.utime(args[0], (1, 1))",
        "futimens": "os.utime(os.open(args[0], os.O_RDONLY), (1, 1))",
    }[how]
    blocks_change(scene, body, scene.file(scene.workspace / "file.txt"), front='fs_read: ["."]')


@pytest.mark.parametrize("how", ["setxattr", "fsetxattr", "setxattrat"])
def test_blocks_setting_an_attribute_of_a_file_outside(scene: Scene, how: str) -> None:
    """No extended attribute is set."""
    target = scene.file(scene.workspace / "file.txt")
    try:
        os.setxattr(target, "user.probe", b"1")
        os.removexattr(target, "user.probe")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    body = {
        "setxattr": "os.setxattr(args[0], 'user.mark', b'x')",
        "fsetxattr": "os.setxattr(os.open(args[0], os.O_RDONLY), 'user.mark', b'x')",
        "setxattrat": """
value = ctypes.create_string_buffer(b'x')
how = struct.pack('QII', ctypes.addressof(value), 1, 0)
call('setxattrat', -100, args[0].encode(), 0, b'user.mark', how, 16)
""",
    }[how]
    if how == "setxattrat" and os.uname().release.split(".")[:2] < ["6", "13"]:
        pytest.skip("setxattrat is of Linux 6.13")
    blocks_change(scene, body, target, front='fs_read: ["."]')


def test_blocks_removing_an_attribute_of_a_file_outside(scene: Scene) -> None:
    """No extended attribute is taken away."""
    target = scene.file(scene.outside / "file.txt")
    try:
        os.setxattr(target, "user.mark", b"1")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    blocks_change(scene, "os.removexattr(args[0], 'user.mark')", target)


def test_blocks_changing_the_flags_of_a_file_outside(scene: Scene) -> None:
    """FS_IOC_SETFLAGS through a descriptor for reading does not make a file undumpable."""
    body = """
file = os.open(args[0], os.O_RDONLY)
word = bytearray(8)
fcntl.ioctl(file, 0x80086601, word)
fcntl.ioctl(file, 0x40086602, struct.pack('q', int.from_bytes(word, sys.byteorder) | 0x40))
"""
    blocks_change(scene, body, scene.file(scene.workspace / "file.txt"), front='fs_read: ["."]')


def test_blocks_changing_the_generation_of_a_file_outside(scene: Scene) -> None:
    """EXT4_IOC_SETVERSION (`f`, 4) through a descriptor for reading, the older twin of FS_IOC_SETVERSION (`v`, 2)."""
    target = scene.file(scene.workspace / "file.txt")
    body = """
file = os.open(args[0], os.O_RDONLY)
fcntl.ioctl(file, 0x40086604, struct.pack('q', 4242))
word = bytearray(8)
fcntl.ioctl(file, 0x80087601, word)
print('generation', int.from_bytes(word[:4], sys.byteorder))
"""
    scene.script(body, front='fs_read: ["."]')
    run = scene.confined(target)
    assert run.attempted
    control = scene.plainly(target)
    if "generation 4242" not in control.out:
        pytest.skip(f"this file system keeps no generation: {control.err.strip().splitlines()[-1:]}")
    assert "generation 4242" not in run.out


@pytest.mark.parametrize(
    "how",
    ["chmod", "fchmod", "open", "openat", "creat", "tmpfile", "mknod", "mknodat", "openat2", "fchmodat2"],
)
def test_blocks_making_a_set_id_file(scene: Scene, how: str) -> None:
    """No file becomes set-id, not even one of the script's own in its own folder."""
    body = """
os.umask(0)
how = args[0]
def made():
    os.close(os.open(name, os.O_CREAT | os.O_WRONLY, 0o755))
for mode in (0o4755, 0o2755):
    name = b'%o' % mode
    try:
        if how == 'chmod': made(); os.chmod(name, mode)
        if how == 'fchmod': made(); os.fchmod(os.open(name, os.O_RDONLY), mode)
        if how == 'fchmodat2': made(); call('fchmodat2', -100, name, mode, 0)
        if how == 'open': libc.syscall(2, name, os.O_CREAT | os.O_WRONLY, mode) if os.uname().machine == 'x86_64' else os.open(name, os.O_CREAT | os.O_WRONLY, mode)
        if how == 'openat': os.open(name, os.O_CREAT | os.O_WRONLY, mode, dir_fd=os.open('.', os.O_PATH))
        if how == 'creat': libc.creat(name, mode)
        if how == 'tmpfile':
            file = os.open('.', os.O_TMPFILE | os.O_WRONLY, mode)
            libc.linkat(-100, b'/proc/self/fd/%d' % file, -100, name, 0x400)
            print('mode %o' % os.fstat(file).st_mode)
        if how == 'mknod': os.mknod(name, stat.S_IFREG | mode)
        if how == 'mknodat': os.mknod(name, stat.S_IFREG | mode, dir_fd=os.open('.', os.O_PATH))
        if how == 'openat2': call('openat2', -100, name, struct.pack('QQQ', os.O_CREAT | os.O_WRONLY, mode, 0), 24)
    except OSError as failure: print(failure)
"""
    scene.script(body)
    run = scene.confined(how)
    assert run.attempted
    assert [path.name for path in scene.workspace.iterdir() if path.stat().st_mode & 0o6000] == []
    assert not {"mode 104755", "mode 102755"} & set(run.out.splitlines())
    for path in scene.workspace.iterdir():
        path.unlink()
    control = scene.plainly(how)
    assert {p.stat().st_mode & 0o6000 for p in scene.workspace.iterdir()} == {0o4000, 0o2000}, control


@pytest.mark.parametrize("place", ["/tmp", "/dev/shm", "/var/tmp"])
def test_blocks_writing_to_shared_folders(scene: Scene, place: str) -> None:
    """Folders of everybody get no file."""
    if not Path(place).is_dir():
        pytest.skip(f"there is no {place}")
    path = Path(place) / f"skillrun-escape-{secrets.token_hex(6)}"
    scene.script(WRITE)
    try:
        run = scene.confined(path)
        assert run.attempted
        assert not path.exists()
        scene.plainly(path)
        assert path.exists()
    finally:
        path.unlink(missing_ok=True)


@pytest.mark.parametrize("style", ["in place", "rename"])
@pytest.mark.parametrize("name", ["SKILL.md", "scripts/attack.py", "scripts/helper.py"])
def test_blocks_a_skill_from_changing_itself(scene: Scene, style: str, name: str) -> None:
    """With the whole workspace writable, the skill in it stays what it is (C-17)."""
    scene.skills = scene.workspace / "skills"
    scene.file(scene.skills / "attack/scripts/helper.py")
    target = scene.skills / "attack" / name
    if style == "rename":
        blocks_change(scene, OVER, target, target, target.with_name("new"))
    else:
        blocks_change(scene, "open(args[0], 'a').write('# changed\\n')", target)


def test_blocks_a_skill_from_swapping_its_folder(scene: Scene) -> None:
    """Nor can the folder of the skill, or the one above, be moved away and another put in its place (C-17)."""
    scene.skills = scene.workspace / "skills"
    body = """
for folder in args:
    try: os.rename(folder, folder + '.old'); os.makedirs(folder)
    except OSError as failure: print(failure)
"""
    target = scene.skills
    blocks_change(scene, body, target, scene.skills / "attack", scene.skills)


def test_blocks_a_skill_that_is_the_workspace_from_changing_itself(scene: Scene) -> None:
    """A skill that works in its own folder and asks for all of it can't write its SKILL.md (C-17)."""
    scene.workspace = scene.skills / "attack"
    scene.folder(scene.workspace / "out")
    body = "open('out/%d' % os.getpid(), 'w'); open(args[0], 'a').write('# changed\\n')"
    blocks_change(scene, body, scene.workspace / "SKILL.md")


def test_blocks_a_skill_named_by_its_folder_from_changing_itself(scene: Scene) -> None:
    """A skill that was named by path, and lies in no known root, can't change itself either (C-17)."""
    scene.skills = scene.workspace / "drafts"
    target = scene.skills / "attack/SKILL.md"
    blocks_change(
        scene,
        "open(args[0], 'a').write('# changed\\n')",
        target,
        target,
        skill=str(scene.skills / "attack"),
        skills=[],
    )


def test_blocks_changing_another_skill_of_the_root(scene: Scene) -> None:
    """A skill can't write into its neighbour, nor add one."""
    scene.skills = scene.workspace / "skills"
    target = scene.file(scene.skills / "other/SKILL.md")
    blocks_change(scene, "open(args[0], 'a').write('# changed\\n')", target)


@pytest.mark.parametrize("root", ["skills", ".agents/skills", ".claude/skills"])
def test_blocks_changing_skills_of_a_root_that_was_not_named(scene: Scene, root: str) -> None:
    """The usual roots hold skills that later runs find, also in a run for which another root was named (law 8)."""
    target = scene.file(scene.workspace / root / "other/SKILL.md")
    blocks_change(scene, "open(args[0], 'a').write('# changed\\n')", target)


def test_blocks_changing_a_skill_that_is_linked_into_a_root(scene: Scene) -> None:
    """A skill found through a link is protected where it really lies (law 8)."""
    target = scene.file(scene.workspace / "store/linked/SKILL.md", "---\nname: linked\ndescription: d\n---\n")
    scene.file(scene.workspace / "store/linked/scripts/run.sh", "#!/bin/sh\n", 0o700)
    scene.link(scene.skills / "linked", scene.workspace / "store/linked")
    blocks_change(scene, "open(args[0], 'a').write('# changed\\n')", target)


def test_reports_a_usual_skill_root_that_appears(scene: Scene) -> None:
    """A root of skills that did not exist and is made by a script is at least reported."""
    scene.script("os.makedirs('skills/evil/scripts'); open('skills/evil/SKILL.md', 'w').write('evil')")
    run = scene.confined()
    assert run.attempted
    made = (scene.workspace / "skills/evil/SKILL.md").exists()
    assert not made or any("skills" in str(one["path"]) for one in run.told["violations"])


def changed_of(scene: Scene, names: list[str]) -> tuple[list[str], list[str]]:
    """Try to append to each of some files of the workspace; return which the confined run changed, and the control."""
    targets = [scene.file(scene.workspace / name, harmless(name)) for name in names]
    scene.script("""
for path in args:
    try: open(path, 'a').write('# changed\\n')
    except OSError as failure: print(failure)
""")
    before = [State.of(target) for target in targets]
    run = scene.confined(*targets)
    assert run.attempted, run
    confined = [State.of(target) for target in targets]
    scene.plainly(*targets)
    plain = [State.of(target) for target in targets]
    return (
        [name for name, old, new in zip(names, before, confined, strict=True) if old != new],
        [name for name, old, new in zip(names, before, plain, strict=True) if old != new],
    )


def test_blocks_changing_what_runs_later(scene: Scene) -> None:
    """Files that other programs run or obey keep their content in a writable workspace (law 8)."""
    scene.file(scene.workspace / ".git/HEAD", "ref: refs/heads/main\n")
    changed, control = changed_of(scene, PROTECTED)
    assert changed == []
    assert control == PROTECTED


@pytest.mark.parametrize("name", [".git/hooks/pre-commit", ".git/config", ".envrc", "skillrun.yaml"])
def test_blocks_replacing_what_runs_later(scene: Scene, name: str) -> None:
    """Such a file is not replaced by a rename either."""
    target = scene.file(scene.workspace / name, harmless(name))
    scene.folder(scene.workspace / "own")
    blocks_change(scene, OVER, target, target, scene.workspace / "own/new")


@pytest.mark.parametrize("name", [".githooks", ".vimrc", ".config/nvim"])
def test_blocks_changing_what_runs_later_behind_a_link_from_above(scene: Scene, name: str) -> None:
    """A protected name in a folder above the write root is a link into it: what it leads to is kept (law 8)."""
    target = scene.file(scene.workspace / "out/kept/file")
    leads = target if name == ".vimrc" else target.parent
    scene.folder((scene.workspace / name).parent)
    scene.link(scene.workspace / name, leads)
    blocks_change(scene, "open(args[0], 'a').write('# changed\\n')", target, front="fs_write: [out]")


def test_tells_of_what_runs_later_behind_a_link_from_above_that_led_nowhere(scene: Scene) -> None:
    """A protected name above the write root is a link to what the script can make: it is prevented or told of (law 8)."""
    scene.folder(scene.workspace / "out")
    hooks = scene.workspace / "out/later/pre-commit"
    scene.link(scene.workspace / ".githooks", hooks.parent)
    scene.script("os.mkdir('out/later'); open('out/later/pre-commit', 'w')", front="fs_write: [out]")
    run = scene.confined()
    assert run.attempted
    made = hooks.exists()
    assert not made or [one["path"] for one in run.told["violations"]] == [str(hooks.parent)]
    shutil.rmtree(hooks.parent, ignore_errors=True)
    scene.plainly()
    assert hooks.exists()


def test_blocks_changing_what_runs_later_where_the_root_lies_in_it(scene: Scene) -> None:
    """A write grant of a folder inside a protected one gives no right to write (law 8)."""
    target = scene.file(scene.workspace / ".vscode/deep/tasks.json")
    blocks_change(scene, "open(args[0], 'a').write('# changed\\n')", target, front="fs_write: [.vscode/deep]")


def test_blocks_changing_shell_start_files(scene: Scene) -> None:
    """Shell start files stay, where the operator lets a script work among them (law 8)."""
    changed, control = changed_of(scene, START_FILES)
    assert changed == []
    assert control == START_FILES


def test_blocks_changing_the_users_git_configuration(scene: Scene) -> None:
    """Git's own settings of a user name commands, as those of a repository do (law 8)."""
    names = [".gitconfig", ".config/git/config"]
    changed, control = changed_of(scene, names)
    assert changed == []
    assert control == names


def test_blocks_moving_a_repository_away(scene: Scene) -> None:
    """`.git` can't be renamed and made anew with hooks of the script's."""
    scene.file(scene.workspace / ".git/hooks/pre-commit")
    scene.file(scene.workspace / ".git/config")
    body = """
os.rename('.git', 'old'); os.makedirs('.git/hooks'); open('.git/hooks/pre-commit', 'w').write('changed')
"""
    blocks_change(scene, body, scene.workspace / ".git/hooks/pre-commit", "x")


def test_blocks_new_hooks_in_a_repository(scene: Scene) -> None:
    """A hook that was not there is not added."""
    scene.file(scene.workspace / ".git/hooks/README")
    scene.file(scene.workspace / ".git/config")
    blocks_change(scene, WRITE, scene.workspace / ".git/hooks/post-checkout")


@pytest.mark.parametrize("name", ["hooks/pre-commit", "config"])
def test_blocks_changing_a_repository_below_the_workspace(scene: Scene, name: str) -> None:
    """A repository inside a writable folder (a vendored one, a submodule of old) is protected as well (law 8)."""
    target = scene.file(scene.workspace / "vendor/lib/.git" / name)
    scene.file(scene.workspace / "vendor/lib/.git/HEAD", "ref: refs/heads/main\n")
    blocks_change(scene, "open(args[0], 'a').write('# changed\\n')", target)


def test_blocks_pointing_a_worktree_at_another_repository(scene: Scene) -> None:
    """In a worktree `.git` is a file that says where hooks and settings are: it is protected too (law 8)."""
    target = scene.file(scene.workspace / ".git", f"gitdir: {scene.outside}/repo/.git/worktrees/w\n")
    blocks_change(scene, "open(args[0], 'w').write('gitdir: evil\\n')", target)


def test_reports_a_git_file_that_appears(scene: Scene) -> None:
    """A `.git` file made by a script, which points git at hooks of the script's, is at least reported."""
    body = """
os.makedirs('evil/hooks'); open('evil/hooks/pre-commit', 'w').write('evil')
open('.git', 'w').write('gitdir: evil')
"""
    scene.script(body)
    run = scene.confined()
    assert run.attempted
    assert not (scene.workspace / ".git").exists() or run.violated(scene.workspace / ".git")


def test_blocks_changing_the_settings_of_one_worktree(scene: Scene) -> None:
    """`config.worktree` names commands like `config` does, where git was told to read it (law 8)."""
    scene.file(scene.workspace / ".git/config", "[extensions]\n\tworktreeConfig = true\n")
    target = scene.file(scene.workspace / ".git/config.worktree")
    blocks_change(scene, "open(args[0], 'a').write('# changed\\n')", target)


def test_blocks_pointing_a_worktree_at_another_common_folder(scene: Scene) -> None:
    """`.git/worktrees/NAME/commondir` says where a worktree's hooks and settings are (law 8)."""
    scene.file(scene.workspace / ".git/config")
    scene.file(scene.workspace / ".git/hooks/README")
    target = scene.file(scene.workspace / ".git/worktrees/w/commondir", "../..\n")
    blocks_change(scene, "open(args[0], 'w').write('/tmp/evil\\n')", target)


def test_blocks_changing_hooks_behind_a_link(scene: Scene) -> None:
    """A folder of hooks that is a link is protected where it leads, and so is the link (law 8)."""
    target = scene.file(scene.workspace / "team-hooks/pre-commit")
    scene.file(scene.workspace / ".git/config")
    scene.link(scene.workspace / ".git/hooks", "../team-hooks")
    blocks_change(scene, "open(args[0], 'a').write('# changed\\n')", target)


def test_blocks_changing_a_repository_behind_a_link(scene: Scene) -> None:
    """A `.git` that is a link to a folder of the workspace is protected where it leads (law 8)."""
    target = scene.file(scene.workspace / "real-git/hooks/pre-commit")
    scene.file(scene.workspace / "real-git/config")
    scene.link(scene.workspace / ".git", "real-git")
    blocks_change(scene, "open(args[0], 'a').write('# changed\\n')", target)


@pytest.mark.parametrize("name", [".envrc", "CLAUDE.md", ".bashrc", "skillrun.lock"])
def test_blocks_replacing_a_protected_name_that_is_a_link(scene: Scene, name: str) -> None:
    """A protected name that is a link can't be replaced by a file of the script's, and its target stays (law 8)."""
    target = scene.file(scene.workspace / "shared/text")
    scene.link(scene.workspace / name, "shared/text")
    body = """
try: open('shared/text', 'a').write('changed')
finally: os.unlink(args[0]); open(args[0], 'w').write('changed')
"""
    before, link = State.of(target), State.of(scene.workspace / name)
    scene.script(body)
    run = scene.confined(scene.workspace / name)
    assert run.attempted
    changed = (State.of(target), State.of(scene.workspace / name)) != (before, link)
    assert not changed, "the script changed a protected name or what it leads to"
    assert scene.plainly(scene.workspace / name).code == 0


def test_blocks_replacing_a_denied_name_that_is_a_link(scene: Scene) -> None:
    """A denied name that is a link is neither readable nor writable: it can't be replaced."""
    scene.file(scene.outside / "real.env")
    scene.link(scene.workspace / ".env", scene.outside / "real.env")
    blocks_change(scene, "os.unlink(args[0]); open(args[0], 'w').write('changed')", scene.workspace / ".env")


def test_blocks_changing_a_denied_file(scene: Scene) -> None:
    """A denied file is not writable either."""
    blocks_change(scene, "open(args[0], 'a').write('changed')", scene.file(scene.workspace / ".env"))


def test_blocks_changing_the_ceiling_file(scene: Scene) -> None:
    """The file of `--ceiling` limits the next run as well, wherever it lies (law 8)."""
    text = 'sandbox:\n  fs_read: ["."]\n  fs_write: ["."]\n'
    scene.ceiling = scene.file(scene.workspace / "limits.yaml", text)
    blocks_change(scene, "open(args[0], 'a').write('# changed\\n')", scene.ceiling)


def test_blocks_changing_the_ceiling_file_behind_a_link(scene: Scene) -> None:
    """Also when it was named through a link (law 8)."""
    text = 'sandbox:\n  fs_read: ["${workspace}"]\n  fs_write: ["${workspace}"]\n'
    target = scene.file(scene.workspace / "real/limits.yaml", text)
    scene.ceiling = scene.link(scene.home / "work-link", scene.workspace / "real") / "limits.yaml"
    blocks_change(scene, "open(args[0], 'a').write('# changed\\n')", target)


def test_blocks_changing_the_operators_file_behind_a_link(scene: Scene) -> None:
    """A configuration folder that is a link into a workspace (of dotfiles) is protected where it leads (law 8)."""
    text = 'sandbox:\n  fs_read: ["${workspace}"]\n  fs_write: ["${workspace}"]\n'
    target = scene.file(scene.workspace / "dotfiles/skillrun/skillrun.yaml", text)
    scene.link(scene.home / ".config", scene.workspace / "dotfiles")
    scene.ceiling = None
    blocks_change(
        scene,
        "open(args[0], 'a').write('# changed\\n')",
        target,
        target,
        config_file=str(scene.home / ".config/skillrun/skillrun.yaml"),
    )


def test_blocks_changing_programs_on_the_path(scene: Scene) -> None:
    """A folder of the caller's PATH that lies in the workspace stays (law 8)."""
    target = scene.file(scene.workspace / "bin/tool", "#!/bin/sh\n", 0o700)
    scene.environ = {"PATH": f"/usr/bin:/bin:{scene.workspace}/bin"}
    blocks_change(scene, "open(args[0], 'a').write('# changed\\n')", target)


def test_reports_protected_paths_that_appear(scene: Scene) -> None:
    """At level 1 what is absent can be made; the Result says so, path by path, and of no others."""
    scene.script("os.makedirs('.git/hooks'); open('.git/hooks/pre-commit', 'w'); open('CLAUDE.md', 'w')")
    run = scene.confined()
    assert run.attempted
    named = {str(one["path"]).removeprefix(f"{scene.workspace}/") for one in run.told["violations"]}
    assert named in ({".git", "CLAUDE.md"}, {".git/hooks", "CLAUDE.md"})


def test_reports_nothing_when_nothing_appeared(scene: Scene) -> None:
    """Protected names that are links, interpreters that are links: what was there before is no violation."""
    scene.file(scene.workspace / "AGENTS.md")
    scene.link(scene.workspace / "CLAUDE.md", "AGENTS.md")
    scene.script("print('done')")
    run = scene.confined()
    assert run.attempted
    assert run.told["violations"] == []


def test_blocks_writing_to_devices(scene: Scene) -> None:
    """Of /dev only the harmless ones are there (C-26): the console, the kernel log and memory stay closed."""
    scene.script("""
for name in ('console', 'kmsg', 'mem', 'tty', 'ptmx', 'vda', 'sda', 'fuse', 'kvm', 'net/tun', 'uinput', 'loop-control'):
    if os.path.exists('/dev/' + name):
        if name in ('tty', 'ptmx') and args: continue
        for flags in (os.O_RDONLY, os.O_WRONLY):
            try: os.open('/dev/' + name, flags | os.O_NONBLOCK); print('opened', name)
            except OSError: pass
""")
    run = scene.confined(*["own terminals"] * (scene.level == 2))
    assert run.attempted
    assert "opened" not in run.out
    assert "opened ptmx" in scene.plainly().out


def test_blocks_a_granted_device_from_being_controlled(scene: Scene) -> None:
    """A terminal that was granted for writing takes no ioctl that types into it (TIOCSTI)."""
    import fcntl

    leader, follower = os.openpty()
    name = os.ttyname(follower)
    if scene.party.other:
        os.chown(name, scene.party.uid, -1)
    scene.ceiling = scene.file(scene.home / "c.yaml", f'sandbox:\n  fs_read: []\n  fs_write: ["{name}"]\n')
    scene.script(
        """
terminal = os.open(args[0], os.O_RDWR)
os.write(terminal, b'written')
for letter in b'typed\\n':
    fcntl.ioctl(terminal, 0x5412, bytes([letter]))
""",
        front=f'fs_write: ["{name}"]',
    )

    def waiting() -> int:
        word = bytearray(4)
        fcntl.ioctl(follower, 0x541B, word)  # FIONREAD
        return int.from_bytes(word, "little")

    try:
        run = scene.confined(name)
        assert run.attempted
        assert waiting() == 0
        control = scene.plainly(name, start_new_session=True)
        if scene.party.uid and "TIOCSTI" not in control.err and waiting() == 0:
            pytest.skip(f"this kernel lets nobody type into a terminal: {control.err.splitlines()[-1:]}")
        assert waiting() > 0, control
    finally:
        os.close(leader)
        os.close(follower)


def test_keeps_git_from_running_what_a_script_left(scene: Scene) -> None:
    """Judged by git itself: after a run that tried everything at once, a commit runs no command of the script's."""
    repository = scene.workspace
    mark = scene.outside / "mark"
    as_party = {"cwd": repository, "env": scene.shape() | {"HOME": str(scene.home)}, **scene.party.identity()}
    git = ["git", "-c", "user.name=n", "-c", "user.email=e"]
    subprocess.run([*git, "init", "-q", "."], check=True, **as_party)
    scene.file(repository / "file.txt")
    body = """
hook = '#!/bin/sh\\ntouch %s\\n' % args[0]
def tried(what):
    try: what()
    except OSError as failure: print(failure)
def write(path, text):
    os.makedirs(os.path.dirname(path) or '.', exist_ok=True)
    with open(path, 'w') as file: file.write(text)
    os.chmod(path, 0o755)
for name in ('pre-commit', 'post-commit', 'post-checkout', 'prepare-commit-msg'):
    tried(lambda: write('.git/hooks/' + name, hook))
tried(lambda: write('.git/config', '[core]\\n\\tfsmonitor = touch %s\\n' % args[0]))
tried(lambda: os.rename('.git/config', '.git/old'))
tried(lambda: write('.git/info/attributes', '* filter=x\\n'))
"""
    scene.script(body)
    run = scene.confined(mark)
    assert run.attempted
    subprocess.run([*git, "add", "file.txt"], check=True, capture_output=True, **as_party)
    subprocess.run([*git, "commit", "-qm", "x"], check=True, capture_output=True, **as_party)
    assert not mark.exists()
    scene.plainly(mark)
    (repository / "file.txt").write_text("again")
    subprocess.run([*git, "commit", "-qam", "x"], check=False, capture_output=True, **as_party)
    assert mark.exists()


def test_keeps_git_from_following_another_common_folder(scene: Scene) -> None:
    """`.git/commondir` makes git take hooks and settings from elsewhere: a script can't make one (law 8)."""
    mark = scene.outside / "mark"
    as_party = {
        "cwd": scene.workspace,
        "env": scene.shape() | {"HOME": str(scene.home)},
        **scene.party.identity(),
    }
    git = ["git", "-c", "user.name=n", "-c", "user.email=e"]
    subprocess.run([*git, "init", "-q", "."], check=True, **as_party)
    scene.script("""
import shutil
shutil.copytree('.git', 'evil', dirs_exist_ok=True)
os.makedirs('evil/hooks', exist_ok=True)
open('evil/hooks/pre-commit', 'w').write('#!/bin/sh\\ntouch %s\\n' % args[0])
os.chmod('evil/hooks/pre-commit', 0o755)
open('.git/commondir', 'w').write('../evil')
""")
    run = scene.confined(mark)
    assert run.attempted
    commit = [*git, "commit", "-q", "--allow-empty", "-m", "x"]
    subprocess.run(commit, check=False, capture_output=True, **as_party)
    assert not mark.exists(), "git ran a hook of the script's"
    scene.plainly(mark)
    subprocess.run(commit, check=False, capture_output=True, **as_party)
    assert mark.exists()
