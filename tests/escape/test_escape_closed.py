"""Folders that a script closes: without the right to search one, nothing in it can be looked at, and all seems absent.

A run of level 2 may change the mode of a folder that it may write in. What it closes for the next run must not be left
uncovered there: it would open it again and have what was denied or protected.
"""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from attack import State

if TYPE_CHECKING:
    from attack import Run, Scene

# Names can be listed, and not looked at; nothing can be listed; all can be looked at by name, and nothing be listed.
MODES = (
    0o444,
    pytest.param(0o644, marks=pytest.mark.slow),
    pytest.param(0o000, marks=pytest.mark.slow),
    0o311,
)
CLOSE = "for path in args[1:]: os.chmod(path, int(args[0], 8))"
OPEN = """
for path in args[1:]:
    try: os.chmod(path, 0o755)
    except OSError as failure: print('closed', failure)
"""


def closed(scene: Scene, mode: int, *folders: Path, front: str = 'fs_read: ["."]\nfs_write: ["."]') -> Run:
    """Have a script close folders of its workspace, the deepest first; where it can't, its user does."""
    scene.script(CLOSE, front=front)
    run = scene.confined(f"{mode:o}", *folders)
    for folder in folders:
        folder.chmod(mode)
    return run


def opened(scene: Scene, body: str, *folders: Path, front: str = 'fs_read: ["."]\nfs_write: ["."]') -> Run:
    """Have a script open folders, the first first, and then do something."""
    scene.script(OPEN + body, front=front)
    run = scene.confined("-", *folders)
    for folder in folders:
        folder.chmod(0o755)
    return run


def refusal(run: Run) -> str:
    """Return the rule by which nothing was started."""
    return str(run.told["problems"][0]["rule"])


def limits(scene: Scene, text: str) -> None:
    """Write the ceiling of a scene, whose `{w}` stands for its workspace."""
    scene.ceiling = scene.file(scene.home / "ceiling.yaml", text.replace("{w}", str(scene.workspace)))


@pytest.mark.parametrize("mode", MODES, ids=oct)
def test_blocks_reading_what_is_denied_in_a_folder_that_was_closed(scene: Scene, mode: int) -> None:
    """A denied file is denied, whatever the folder lets anybody look at when the next run is planned."""
    limits(scene, 'sandbox: {fs_read: ["{w}"], fs_write: ["{w}"], deny: ["{w}/sub/file"]}\n')
    token = scene.secret(scene.workspace / "sub/file")
    sub = scene.workspace / "sub"
    closed(scene, mode, sub)
    body = "print(open('sub/file').read()); open('sub/file', 'w')"

    run = opened(scene, body, sub)

    assert token not in run.said
    assert token in (sub / "file").read_text()
    sub.chmod(mode)
    assert token in scene.plainly("-", sub).out


@pytest.mark.parametrize("mode", MODES, ids=oct)
@pytest.mark.parametrize(
    "name", [".git/config", ".git/hooks/pre-commit", ".config/nvim/init.lua", "deep/.git/config"]
)
def test_blocks_changing_what_runs_later_in_a_folder_that_was_closed(
    scene: Scene, name: str, mode: int
) -> None:
    """Protected files stay as they are (law 8), and so does what may be in a folder nobody can look into."""
    target = scene.file(scene.workspace / name, "# as it was\n")
    before = State.of(target)
    folders = [folder for folder in reversed(target.parents) if scene.workspace in folder.parents]
    closed(scene, mode, *reversed(folders))

    opened(scene, f"open({name!r}, 'a').write('# changed\\n')", *folders)

    assert State.of(target) == before
    for folder in reversed(folders):
        folder.chmod(mode)
    scene.plainly("-", *folders)
    assert State.of(target) != before


@pytest.mark.parametrize("mode", MODES, ids=oct)
def test_blocks_reading_what_is_denied_in_a_closed_folder_that_is_only_read(scene: Scene, mode: int) -> None:
    """The same where nothing may be written; and whatever the mode, it is no exception that comes out."""
    limits(scene, 'sandbox: {fs_read: ["{w}"], deny: ["{w}/sub/file"]}\n')
    token = scene.secret(scene.workspace / "sub/file")
    closed(scene, mode, scene.workspace / "sub", front="fs_read: [.]")

    run = opened(scene, "print(open('sub/file').read())", scene.workspace / "sub", front="fs_read: [.]")

    assert token not in run.said
    assert run.attempted or "problems" in run.told or run.told["termination"] == "failed_to_start"
    assert token in scene.plainly("-", scene.workspace / "sub").out


def test_blocks_a_script_that_closes_its_workspace_for_its_next_run(scene: Scene) -> None:
    """One skill, run again and again, that closes all it may when it ends: what is secret stays so, and what it left is told."""
    limits(scene, 'sandbox: {fs_read: ["{w}"], fs_write: ["{w}"]}\n')
    tokens = [scene.secret(scene.workspace / ".env"), scene.secret(scene.workspace / ".config/gh/hosts.yml")]
    scene.file(scene.workspace / "CLAUDE.md")
    folders = [scene.workspace, scene.workspace / ".config"]
    scene.script(
        OPEN
        + "for path in ('/.env', '/.config/gh/hosts.yml'):\n"
        + "    try: print(open(args[1] + path).read())\n"
        + "    except OSError as failure: print(failure)\n"
        + "for path in reversed(args[1:]):\n"
        + "    try: os.chmod(path, 0o444)\n"
        + "    except OSError as failure: print(failure)\n",
        front='fs_read: ["${workspace}"]\nfs_write: ["${workspace}"]\nmetadata: {skillrun: {cwd: skill}}',
    )
    runs = [scene.confined("-", *folders) for _ in range(3)]

    assert runs[0].attempted
    assert not [token for run in runs for token in tokens if token in run.said]
    if (
        scene.level == 2 and scene.party.uid
    ):  # root looks into any folder, and level 1 lets no mode be changed
        assert [run.rules for run in runs] == [{"folder-closed"}] * 3
        assert all(run.violated(folder) for run in runs for folder in folders)
    for folder in folders:
        folder.chmod(0o755)
    said = scene.plainly("-", *folders).out
    assert all(token in said for token in tokens)


def test_blocks_what_a_denied_link_in_a_folder_that_was_closed_leads_to(scene: Scene) -> None:
    """Where it can't be told what a denied name leads to nothing runs: the script would read it by its own name."""
    limits(scene, 'sandbox: {fs_read: ["{w}"], fs_write: ["{w}"], deny: ["{w}/conf/key"]}\n')
    token = scene.secret(scene.workspace / "data/key")
    scene.link(scene.workspace / "conf/key", "../data/key")
    closed(scene, 0o444, scene.workspace / "conf")
    scene.script("print(open('data/key').read())", front='fs_read: ["."]')

    run = scene.confined()

    assert token not in run.said
    if scene.party.uid:  # root looks into any folder
        assert refusal(run) == "path-closed"
    assert token in scene.plainly().out


def test_blocks_a_secret_that_a_link_in_a_folder_that_was_closed_leads_to(scene: Scene) -> None:
    """A name of the shipped secrets may be a link as well."""
    token = scene.secret(scene.workspace / "data/key")
    scene.link(scene.workspace / ".docker/config.json", "../data/key")
    closed(scene, 0o444, scene.workspace / ".docker")
    scene.script("print(open('data/key').read())", front='fs_read: ["."]')

    run = scene.confined()

    assert token not in run.said
    assert token in scene.plainly().out


@pytest.mark.parametrize("name", [".git/hooks", ".config/nvim", ".githooks"])
def test_blocks_what_a_protected_link_in_a_folder_that_was_closed_leads_to(scene: Scene, name: str) -> None:
    """A protected name above the write root may be a link into it, also where its folder can't be looked into (law 8)."""
    hook = scene.file(scene.workspace / "out/hooks/pre-commit")
    node = scene.link(scene.workspace / (name if "/" in name else "way/on"), "../out/hooks")
    if "/" not in name:
        scene.link(scene.workspace / name, "way/on")
    closed(scene, 0o444, node.parent)
    before = State.of(hook)
    scene.script("open('out/hooks/pre-commit', 'a').write('x')", front="fs_write: [out]")

    run = scene.confined()

    assert State.of(hook) == before
    if scene.party.uid:
        assert refusal(run) == "path-closed"
    scene.plainly()
    assert State.of(hook) != before


@pytest.mark.parametrize("link", [".git/hooks", "sub/.git/hooks", "sub/.githooks"])
@pytest.mark.parametrize("mode", MODES, ids=oct)
def test_blocks_what_a_link_in_a_closed_part_of_the_write_root_leads_to(
    scene: Scene, link: str, mode: int
) -> None:
    """A folder that was closed may hold a link to what the script may write, under a protected name (law 8)."""
    hook = scene.file(scene.workspace / "out/hooks/pre-commit")
    node = scene.link(scene.workspace / link, scene.workspace / "out/hooks")
    closed(scene, mode, node.parent)
    before = State.of(hook)
    scene.script("open('out/hooks/pre-commit', 'a').write('x')")

    run = scene.confined()

    assert State.of(hook) == before
    if scene.party.uid:
        assert refusal(run) == "path-closed"
    scene.plainly()
    assert State.of(hook) != before


@pytest.mark.parametrize("shut", ["folder", "file"])
def test_blocks_what_settings_of_git_name_that_were_closed(scene: Scene, shut: str) -> None:
    """Settings that can't be read may name a folder of hooks; who has closed them may open them later (law 8)."""
    hook = scene.file(scene.workspace / "mine/pre-commit")
    scene.file(scene.workspace / ".git/config", "[include]\npath = ../conf/git\n")
    included = scene.file(scene.workspace / "conf/git", "[core]\nhooksPath = mine\n")
    if shut == "folder":
        closed(scene, 0o444, included.parent)
    else:
        included.chmod(0)
    before = State.of(hook)
    scene.script("open('mine/pre-commit', 'a').write('x')", front="fs_write: [mine]")

    run = scene.confined()

    assert State.of(hook) == before
    if scene.party.uid:  # root looks into any folder
        assert refusal(run) == "path-closed"
    scene.plainly()
    assert State.of(hook) != before


def test_blocks_closing_a_folder_between_search_and_survey(scene: Scene) -> None:
    """Another run may close a folder after it was searched: then nothing starts, as what is in it can't be covered."""
    token = scene.secret(scene.workspace / "sub/.git/hooks/secret")
    hook = scene.file(scene.workspace / "sub/.git/hooks/pre-commit")
    limits(scene, 'sandbox: {fs_read: ["{w}"], fs_write: ["{w}"], deny: ["{w}/sub/.git/hooks/secret"]}\n')
    before = State.of(hook)
    scene.script(
        OPEN
        + "open(args[2] + '/hooks/pre-commit', 'a').write('x'); print(open(args[2] + '/hooks/secret').read())"
    )
    git = scene.workspace / "sub/.git"

    run = scene.confined("-", git.parent, git, close_before_survey=str(git))

    git.chmod(0o755)
    assert token not in run.said
    assert State.of(hook) == before
    if scene.party.uid:  # root looks into any folder
        assert refusal(run) == "path-closed"
    assert token in scene.plainly("-", git.parent, git).out


def test_a_limit_in_a_workspace_that_was_closed_is_not_lost(scene: Scene) -> None:
    """The project's skillrun.yaml must not look absent: what it limits would be allowed."""
    scene.file(scene.workspace / "skillrun.yaml", "sandbox: {fs_read: []}\n")
    token = scene.secret(scene.outside / "file")
    scene.ceiling = scene.file(scene.home / "ceiling.yaml", f'sandbox: {{fs_read: ["{scene.outside}"]}}\n')
    front = f'fs_read: ["{scene.outside}"]\nmetadata: {{skillrun: {{cwd: skill}}}}'
    scene.script(f"print(open({str(scene.outside / 'file')!r}).read())", front=front)
    scene.workspace.chmod(0o444)

    run = scene.confined()

    scene.workspace.chmod(0o755)
    assert token not in run.said
    assert token in scene.plainly().out


def test_a_protected_file_in_a_folder_that_the_run_closed_is_told_of(scene: Scene) -> None:
    """What is made and then closed can't be looked at afterwards: the folder is named."""
    scene.script(
        "os.makedirs('new/.git/hooks'); open('new/.git/hooks/pre-commit', 'w'); os.chmod('new', 0o444)"
    )

    run = scene.confined()

    (scene.workspace / "new").chmod(0o755)
    assert run.attempted
    assert run.told["violations"]
    if scene.level == 2 and scene.party.uid:  # level 1 keeps no modes, and root looks into any folder
        assert run.rules == {"folder-closed", "repository-commands"}
        assert run.violated(scene.workspace / "new")


def test_a_skill_in_a_folder_that_the_run_closed_is_moved_away(scene: Scene) -> None:
    """A script can't keep a skill that it made for a later run by closing its folder."""
    made = scene.workspace / ".agents/skills/evil"
    scene.folder(made.parent)
    scene.script(
        "os.makedirs('.agents/skills/evil/scripts'); open('.agents/skills/evil/SKILL.md', 'w').write('evil')\n"
        "os.chmod('.agents/skills/evil', 0o444)"
    )

    run = scene.confined()

    assert run.attempted
    assert not made.exists() or run.violated(made / "SKILL.md")
    scene.plainly()
    assert made.exists()


@pytest.mark.parametrize("where", ["beside", "below"])
def test_a_denied_file_in_somebody_elses_closed_folder_stops_nothing(scene: Scene, where: str) -> None:
    """No script can have closed a folder of another user, or open it: it is hidden where it lies in a grant."""
    foreign = scene.folder(scene.workspace / "data/theirs" if where == "below" else scene.outside / "theirs")
    (foreign / "file").write_text("secret")
    if scene.party.other:
        os.chown(foreign, 54321, 54321)
    limits(
        scene, f'sandbox: {{fs_read: ["{{w}}/data"], fs_write: ["{{w}}/out"], deny: ["{foreign}/file"]}}\n'
    )
    scene.folder(scene.workspace / "out")
    scene.script(
        "open('out/new', 'w'); print(open(args[0]).read())", front="fs_read: [data]\nfs_write: [out]"
    )

    run = scene.confined(foreign / "file")

    assert run.attempted, run
    assert (scene.workspace / "out/new").exists()
    assert "secret" not in run.out


def test_a_secret_in_a_closed_root_that_leads_into_another_root_stops_the_run(scene: Scene) -> None:
    """Of a granted folder that can't be looked into it can't be told which of its names are links."""
    token = scene.secret(scene.workspace / "two/key")
    scene.link(scene.workspace / "one/.netrc", "../two/key")
    closed(scene, 0o444, scene.workspace / "one")
    scene.script("print(open('two/key').read())", front="fs_read: [one, two]")

    run = scene.confined()

    assert token not in run.said
    if scene.party.uid:
        assert refusal(run) == "path-closed"
    assert token in scene.plainly().out


def test_a_folder_too_deep_to_be_named_stops_no_later_run(scene: Scene) -> None:
    """Folders whose path no call takes are denied with the one that they are in."""
    scene.script("os.chdir('deep')\nfor _ in range(25): os.mkdir('d' * 200); os.chdir('d' * 200)")
    scene.folder(scene.workspace / "deep")
    scene.confined()
    if not list((scene.workspace / "deep").iterdir()):
        scene.plainly()
    scene.script("open('new', 'w'); print('ran')")

    run = scene.confined()

    assert run.attempted, run


@pytest.mark.parametrize("how", ["git", "file", "mode"])
def test_blocks_dropping_what_limits_a_project(scene: Scene, how: str) -> None:
    """A repository made in a repository, or opened to everybody, does not hide the skillrun.yaml above it."""
    repository, inner = scene.workspace, scene.workspace / "inner"
    token = scene.secret(inner / "key")
    scene.folder(repository / ".git")
    scene.file(repository / "skillrun.yaml", "sandbox: {deny: [inner/key]}\n")
    grant = repository if how == "mode" else inner
    scene.ceiling = scene.file(
        scene.home / "ceiling.yaml", f'sandbox: {{fs_read: ["{grant}"], fs_write: ["{grant}"]}}\n'
    )
    body = {
        "git": "os.mkdir('.git')",
        "file": "open('.git', 'w').write('gitdir: x')",
        "mode": "os.chmod('..', 0o777)",
    }[how]
    front = 'fs_read: [".."]\nfs_write: [".."]' if how == "mode" else 'fs_read: ["."]\nfs_write: ["."]'
    scene.script(body, front=front)
    scene.confined(workspace=str(inner))
    if how == "mode":
        repository.chmod(0o777)
    elif not (inner / ".git").exists():  # level 1 lets nothing be made beside what is denied
        scene.folder(inner / ".git")
    scene.script("print(open(args[0]).read())", front=front)

    run = scene.confined(inner / "key", workspace=str(inner))

    assert run.attempted, run
    assert token not in run.said
    assert token in scene.plainly(inner / "key").out


@pytest.mark.parametrize("mode", [*MODES, 0o111, 0o555], ids=oct)
@pytest.mark.parametrize("which", ["evil", "skills", ".claude", "."])
def test_a_skill_is_moved_away_whatever_rights_the_script_took(scene: Scene, which: str, mode: int) -> None:
    """Neither a closed folder nor one without the right to write keeps a skill where a later run would find it."""
    made = scene.workspace / ".claude/skills/evil/SKILL.md"
    folder = {
        "evil": made.parent,
        "skills": made.parents[1],
        ".claude": made.parents[2],
        ".": scene.workspace,
    }[which]
    scene.script(
        "os.makedirs('.claude/skills/evil/scripts'); open('.claude/skills/evil/SKILL.md', 'w').write('evil')\n"
        f"os.chmod({str(folder)!r}, {mode})"
    )

    run = scene.confined(state=str(scene.folder(scene.home / "state")))

    assert run.attempted
    assert not made.exists()
    assert run.told["violations"]
    scene.workspace.chmod(0o755)
    shutil.rmtree(scene.workspace / ".claude", ignore_errors=True)
    scene.plainly()
    for above in reversed(made.parents[:4]):
        above.chmod(0o755)
    assert made.exists()


@pytest.mark.parametrize("mode", [0o000, 0o111, 0o444])
def test_a_lock_is_moved_away_from_a_folder_that_was_closed(scene: Scene, mode: int) -> None:
    """What a script approves for itself is not left in a folder that can be searched and not listed."""
    scene.folder(scene.workspace / "lib")
    scene.script(f"open('lib/skillrun.lock', 'w').write('forged'); os.chmod('lib', {mode})")

    run = scene.confined(state=str(scene.folder(scene.home / "state")))

    (scene.workspace / "lib").chmod(0o755)
    assert run.attempted
    assert not (scene.workspace / "lib/skillrun.lock").exists()
    scene.plainly()
    (scene.workspace / "lib").chmod(0o755)
    assert (scene.workspace / "lib/skillrun.lock").exists()


@pytest.mark.parametrize("part", ["HEAD", "objects", "HEAD objects refs"])
@pytest.mark.parametrize("name", ["config", "hooks/post-update"])
def test_blocks_changing_a_bare_repository_that_was_disguised(scene: Scene, part: str, name: str) -> None:
    """A repository does not lose its protection when a script takes away what it is known by (law 8)."""
    bare = scene.workspace / "srv.git"
    target = scene.file(bare / name)
    for folder in ("objects", "refs", "hooks"):
        scene.folder(bare / folder)
    scene.file(bare / "HEAD", "ref: refs/heads/main\n")
    scene.file(bare / "config", "as it was\n")
    scene.script(
        "for one in args:\n"
        "    try: os.rename('srv.git/' + one, 'srv.git/' + one + '_')\n"
        "    except OSError as failure: print(failure)"
    )
    scene.confined(*part.split())
    before = State.of(target)
    scene.script(f"open('srv.git/{name}', 'a').write('# changed')")

    run = scene.confined()

    assert run.attempted
    assert State.of(target) == before
    scene.plainly()
    assert State.of(target) != before


@pytest.mark.level(2)
def test_blocks_a_socket_whose_path_no_call_takes(scene: Scene) -> None:
    """A socket is reached from the folder that it is in, however long its path is."""
    here = scene.workspace
    before = Path.cwd()
    folder = scene.folder(here / "deep")
    left = 4090 - len(str(folder))
    names = ["d" * 200] * (left // 201) + ["e" * max(1, left % 201 - 1)]
    os.chdir(folder)
    try:
        for name in names:
            Path(name).mkdir()
            Path(name).chmod(0o755)
            scene.own(Path(name))
            os.chdir(name)
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind("socket12")
            scene.own(Path("socket12"))
            listening.listen()
            scene.script(
                "os.chdir('deep')\n"
                f"for name in {names!r}: os.chdir(name)\n"
                "with socket.socket(socket.AF_UNIX) as s: s.connect('socket12'); print('CONNECTED')"
            )
            run = scene.confined()
            assert "CONNECTED" not in run.out, run
            assert run.attempted
            assert "CONNECTED" in scene.plainly().out
    finally:
        os.chdir(before)


def test_many_folders_closed_in_each_other_take_no_time(scene: Scene) -> None:
    """Each is opened only to find the next: after a few the rest is told of as it is."""
    scene.script(
        "for _ in range(400): os.mkdir('d'); os.chdir('d'); open('x', 'w')\n"
        "for _ in range(400): os.chdir('..'); os.chmod('d', 0o400)"
    )
    run = scene.confined()
    inner = scene.workspace / "d"
    for _ in range(401):
        if not inner.exists():
            break
        inner.chmod(0o755)
        inner /= "d"
    assert run.attempted
    if scene.level == 2 and scene.party.uid:
        assert run.rules == {"folder-closed", "door-appeared"}
