"""How far a grant reaches, end to end: what the words of a request and a ceiling mean on the live kernel."""

from __future__ import annotations

import pytest
from attack import Scene, blocks_change, blocks_reading

LOOK = """
for path in args:
    try: print('read', path, open(path + '/f').read().strip())
    except OSError as failure: print('failed', path, failure)
"""


def limits(scene: Scene, text: str) -> None:
    """Write the ceiling of a scene, whose `{b}` stands for its base."""
    scene.ceiling = scene.file(scene.home / "ceiling.yaml", text.replace("{b}", str(scene.base)))


def reads(scene: Scene, request: str, *folders: str) -> set[str]:
    """Return which of some folders a run could read with a request."""
    for folder in folders:
        scene.file(scene.base / folder / "f", f"token-of-{folder}\n")
    scene.script(LOOK, front=request.replace("{b}", str(scene.base)))
    paths = [scene.base / folder for folder in folders]
    run = scene.confined(*paths)
    assert run.attempted, run
    control = scene.plainly(*paths)
    assert all(f"token-of-{folder}\n" in control.out for folder in folders), control
    return {folder for folder in folders if f"token-of-{folder}\n" in run.out}


@pytest.mark.parametrize("asked", ["data2", "dat", "data-private", "data"])
def test_a_folder_with_the_same_beginning_is_another_folder(scene: Scene, asked: str) -> None:
    """A ceiling of `data` covers `data` and what is in it, not `data2` (C-05)."""
    limits(scene, 'sandbox:\n  fs_read: ["{b}/data"]\n')
    scene.folder(scene.base / "data")
    got = reads(scene, f'fs_read: ["{{b}}/{asked}"]', "data/x", "data2", "dat", "data-private")
    assert got == ({"data/x"} if asked == "data" else set())


def test_a_request_for_everything_is_cut_to_the_ceiling(scene: Scene) -> None:
    """`/` under a ceiling of one folder gives that folder (C-05)."""
    limits(scene, 'sandbox:\n  fs_read: ["{b}/data"]\n')
    assert reads(scene, 'fs_read: ["/"]', "data", "data2") == {"data"}


@pytest.mark.parametrize(
    ("asked", "writable"),
    [("./out/../..", True), ("out/./x", True), ("link/..", False), ("out/../outer", False)],
)
def test_dots_are_resolved_as_the_system_resolves_them(scene: Scene, asked: str, *, writable: bool) -> None:
    """`..` goes up after links were followed: what that leaves is refused, what it widens is narrowed (C-06)."""
    limits(scene, 'sandbox:\n  fs_write: ["${workspace}/out"]\n')
    scene.folder(scene.workspace / "out/x")
    scene.link(scene.workspace / "link", "/etc/ssl")
    target = scene.file(scene.workspace / "outer/f")
    scene.script("open('out/x/new', 'w'); print('written')", front=f'fs_write: ["{asked}"]')
    run = scene.confined()
    assert run.attempted
    assert ("written\n" in run.out) is writable
    assert set(run.told["write"]) <= {str(scene.workspace / "out"), str(scene.workspace / "out/x")}
    assert bool(run.told["refused"]) is not writable
    blocks_change(scene, "open(args[0], 'w').write('changed')", target, front=f'fs_write: ["{asked}"]')


@pytest.mark.parametrize(
    "spelled", ["{b}/data/", "{b}/data//", "/{b}/data", "{b}/./data/", "{b}//data/../data"]
)
def test_slashes_do_not_change_a_path(scene: Scene, spelled: str) -> None:
    """However it is spelled, a granted folder is granted and its sibling is not (C-07)."""
    limits(scene, 'sandbox:\n  fs_read: ["{b}/data"]\n')
    assert reads(scene, f'fs_read: ["{spelled}"]', "data", "data2") == {"data"}


@pytest.mark.parametrize("spelled", ["{b}/home/.ssh", "{b}/home/.ssh//", "/{b}//home/./.ssh/"])
def test_slashes_do_not_open_what_is_denied(scene: Scene, spelled: str) -> None:
    """A denied folder is denied however it is spelled (C-07)."""
    limits(scene, f'sandbox:\n  fs_read: ["{{b}}/home"]\n  deny: ["{spelled}"]\n')
    key = scene.home / ".ssh/id"
    blocks_reading(
        scene, "print(open(args[0]).read())", scene.secret(key), key, front=f'fs_read: ["{scene.home}"]'
    )


@pytest.mark.parametrize("caller", ["/", "skills", "work"])
@pytest.mark.parametrize("spelled", ["data", "./data"])
def test_a_relative_request_means_the_workspace(scene: Scene, caller: str, spelled: str) -> None:
    """Relative paths of a skill start in the folder the script runs in, from wherever skillrun is called (C-10)."""
    scene.options["from"] = str(scene.base / caller) if caller != "/" else "/"
    got = reads(scene, f'fs_read: ["{spelled}"]', "work/data", "skills/attack/../data", "data")
    assert got == {"work/data"}


def test_a_relative_ceiling_means_the_folder_of_its_file(scene: Scene) -> None:
    """Relative paths of a ceiling file start where the file lies (C-10)."""
    scene.ceiling = scene.file(scene.base / "conf/ceiling.yaml", "sandbox:\n  fs_read: [./shared]\n")
    got = reads(scene, 'fs_read: ["{b}/conf/shared", "shared"]', "conf/shared", "work/shared")
    assert got == {"conf/shared"}


def test_a_tilde_means_the_callers_home(scene: Scene) -> None:
    """`~/` is the home of the caller, also inside, where HOME is another folder; nothing called `~` appears (C-11)."""
    limits(scene, 'sandbox:\n  fs_read: ["~/notes"]\n')
    assert reads(scene, 'fs_read: ["~/notes"]', "home/notes", "home/other") == {"home/notes"}
    assert not (scene.workspace / "~").exists()


@pytest.mark.parametrize("spelled", ["${HOME}/n", "$TMPDIR/x", "~root/x", "$UNSET/x", "~", "${UNSET}/x"])
def test_other_variables_are_errors(scene: Scene, spelled: str) -> None:
    """No other variable is guessed at: such a skill does not run (C-11)."""
    scene.script("print('ran')", front=f'fs_read: ["{spelled}"]')
    told = scene.confined().told
    assert told.get("raised") == "SkillError" or told["termination"] == "refused"
    assert spelled in str(told["problems"])


def test_a_tilde_without_a_home_is_an_error(scene: Scene) -> None:
    """With no home known, `~/x` is nothing, above all not `/x` (C-11)."""
    limits(scene, "sandbox:\n  fs_read: [/]\n")
    scene.script("print('ran')", front='fs_read: ["~/notes"]')
    told = scene.confined(home=None).told
    assert told.get("raised") == "SkillError"


def test_a_link_that_a_skill_ships_leads_nowhere(scene: Scene) -> None:
    """A skill that asks for its own `data`, which is a link to a home's secrets, is granted nothing (C-14)."""
    token = scene.secret(scene.home / ".ssh/id")
    limits(scene, 'sandbox:\n  fs_read: ["{b}/skills"]\n')
    scene.link(scene.skills / "attack/data", scene.home / ".ssh")
    run = blocks_reading(
        scene,
        "print(open(os.path.dirname(sys.argv[0]) + '/../data/id').read())",
        token,
        front='fs_read: ["./data", "${skill}/data"]',
    )
    assert run.told["read"] == []
    assert str(scene.home / ".ssh") in str(run.told["refused"])


CEILINGS = [
    ("{}", {"work"}, False),
    ("{fs_read: []}", set(), False),
    ("{fs_read: null}", set(), False),
    ("{timeout: 10}", {"work"}, False),
    ("{network: true}", {"work"}, True),
]


@pytest.mark.parametrize(("text", "readable", "network"), CEILINGS)
def test_absent_empty_and_null_are_three_things(
    scene: Scene, text: str, readable: set[str], *, network: bool
) -> None:
    """An absent key is the default, an empty or null list is nothing; none of them is no limit (C-18)."""
    limits(scene, f"sandbox: {text}\n")
    got = reads(scene, 'fs_read: ["."]\nnetwork: true\ntimeout: 60', "work", "outside")
    assert got == readable
    run = scene.confined()
    assert run.told["network"] is network
    assert run.told["timeout"] == (10 if "timeout" in text else 60)


def test_a_missing_ceiling_file_is_an_error(scene: Scene) -> None:
    """A file that was named and is not there is no ceiling, and nothing starts without one (C-18)."""
    scene.ceiling = scene.base / "nowhere.yaml"
    scene.script("open('ran', 'w')")
    assert scene.confined().told.get("raised") == "ConfigError"
    assert not (scene.workspace / "ran").exists()


def test_a_ceiling_that_does_not_parse_starts_nothing(scene: Scene) -> None:
    """Nor does one that can't be read as what it should be."""
    for text in ("sandbox: [", "sandbox:\n  fs_raed: []\n", "", "sandbox: {timeout: null}\n"):
        scene.ceiling = scene.file(scene.home / "ceiling.yaml", text)
        scene.script("open('ran', 'w')")
        assert scene.confined().told.get("raised") == "ConfigError", text
    assert not (scene.workspace / "ran").exists()


def test_a_skill_that_declares_nothing_gets_nothing(scene: Scene) -> None:
    """No request is no grant: not even the workspace it runs in."""
    token = scene.secret(scene.workspace / "file.txt")
    blocks_reading(scene, "print(open('file.txt').read())", token, front="timeout: 5")


def test_a_project_file_can_only_narrow(scene: Scene) -> None:
    """A `skillrun.yaml` of a cloned folder takes away, and what would give is an error that starts nothing."""
    scene.file(scene.workspace / "skillrun.yaml", "sandbox: {fs_read: [], fs_write: []}\n")
    token = scene.secret(scene.workspace / "file.txt")
    blocks_reading(scene, "print(open('file.txt').read())", token, front='fs_read: ["."]')
    for wider in (
        "sandbox: {fs_read: [/]}\n",
        "sandbox: {enabled: false}\n",
        "sandbox: {require: none}\n",
        "trusted: []\n",
    ):
        scene.file(scene.workspace / "skillrun.yaml", wider)
        assert scene.confined().told.get("raised") == "ConfigError", wider


def test_a_grant_of_one_file_is_written_in_place_and_not_replaced(scene: Scene) -> None:
    """A single file is no folder: writing works, a save by rename fails, and the result says so beforehand."""
    limits(scene, 'sandbox:\n  fs_write: ["${workspace}"]\n')
    target = scene.file(scene.workspace / "notes.txt")
    body = "open(args[0], 'a').write('more\\n')\nos.replace(os.environ['TMPDIR'] + '/new', args[0])"
    make = "open(os.environ['TMPDIR'] + '/new', 'w').write('replaced')\n"
    scene.script(make + body, front="fs_write: [notes.txt]")
    run = scene.confined(target)
    assert run.attempted
    assert target.read_text() == "as it was\nmore\n"
    assert "single-file" in run.rules

    scene.script("", front="fs_write: [.]")
    assert "single-file" not in scene.confined().rules


def test_a_kept_file_with_a_second_name_is_told(scene: Scene) -> None:
    """Another name of a denied file reads the same bytes, and nothing finds it: the result warns (see Known limits)."""
    limits(scene, 'sandbox:\n  fs_read: ["${workspace}"]\n')
    scene.secret(scene.workspace / ".env")
    scene.script("", front="fs_read: [.]")
    assert "second-name" not in scene.confined().rules
    (scene.workspace / "other").hardlink_to(scene.workspace / ".env")
    assert "second-name" in scene.confined().rules


def test_a_grant_that_what_is_kept_overrules_is_told(scene: Scene) -> None:
    """A write grant of a protected folder gives no right to write, and does not pass over it in silence."""
    limits(scene, 'sandbox:\n  fs_write: ["${workspace}"]\n')
    hook = scene.file(scene.workspace / ".githooks/pre-commit")
    front = "fs_write: [.githooks]"
    run = blocks_change(scene, "open(args[0], 'a').write('# changed')", hook, front=front)
    assert "grant-overruled" in run.rules


def test_nothing_is_told_where_what_is_kept_takes_nothing_away(scene: Scene) -> None:
    """Reading a protected folder is given as it was asked for, and a run's own folder lies below one that is hidden."""
    limits(scene, 'sandbox:\n  fs_read: ["${workspace}"]\n  fs_write: ["${workspace}/out"]\n')
    hook = scene.file(scene.workspace / ".githooks/pre-commit")
    scene.script("print(open(args[0]).read())", front="fs_read: [.githooks]\nfs_write: [out]")
    run = scene.confined(hook)
    assert run.attempted
    assert "grant-overruled" not in run.rules
    scene.script("", front="fs_read: []")
    assert "grant-overruled" not in scene.confined().rules
