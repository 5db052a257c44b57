"""Deciding: request ∩ ceiling over resolved paths, with every cut explained (DESIGN 5, 6, 7)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from permission_scene import DIGEST, Scene

from skillrun.errors import ConfigError, SkillError, UsageError
from skillrun.permissions.decide import decide
from skillrun.permissions.flags import Flags
from skillrun.permissions.grant import Capability, Cwd
from skillrun.permissions.place import Place
from skillrun.problem import error

OPEN = 'sandbox: {fs_read: ["${workspace}"], fs_write: ["${workspace}/out"]}\n'


def test_nothing_asked_nothing_granted(scene: Scene) -> None:
    """A skill that declares nothing gets no path, no network, no variable; only the ceiling's time and limits hold."""
    grant = scene.grant("")
    assert (grant.capabilities.fs_read, grant.capabilities.fs_write) == (frozenset(), frozenset())
    assert not grant.capabilities.network
    assert grant.capabilities.timeout == 60
    assert [item.capability for item in grant.granted] == [Capability.TIMEOUT]
    assert (grant.narrowed, grant.refused, grant.warnings) == ((), (), ())


@pytest.mark.parametrize(
    ("asked", "given"),
    [("/D2", None), ("/D", "/D"), ("/D/x", "/D/x"), ("/", "/D"), ("/Da", None), ("/D/../D2", None)],
)
def test_prefix_siblings_and_the_root(scene: Scene, asked: str, given: str | None) -> None:
    """Only the root and what is below it is granted; `/` is cut down to it; a sibling is refused (C-05)."""
    data = f"{scene.top}/data"
    for folder in ("data", "data2", "dataa"):
        (scene.top / folder).mkdir()
    scene.operator(f"sandbox: {{fs_read: [{data}]}}\n")
    grant = scene.grant(f"fs_read: ['{asked.replace('/D', data)}']")
    expected = set() if given is None else {Path(given.replace("/D", data))}
    assert grant.capabilities.fs_read == expected
    assert bool(grant.refused) == (given is None)
    assert bool(grant.narrowed) == (asked == "/")


def test_the_root_as_ceiling_covers_everything(scene: Scene) -> None:
    """A ceiling of `/` is every path, not only itself."""
    scene.operator('sandbox: {fs_read: ["/"]}\n')
    assert scene.grant('fs_read: ["/etc/hosts"]').capabilities.fs_read == {Path("/etc/hosts")}


@pytest.mark.parametrize(
    ("path", "given", "says"),
    [
        ("./out/../../skills", None, "home/skills"),
        ("out/./x", "out/x", ""),
        ("link/..", None, "ssl-parent"),
        ("out//x/", "out/x", ""),
    ],
)
def test_dot_dot_goes_up_from_the_target(scene: Scene, path: str, given: str | None, says: str) -> None:
    """Paths are resolved in file system order and refused with the resolved path in the message (C-06, C-07)."""
    (scene.top / "ssl-parent/ssl").mkdir(parents=True)
    (scene.workspace / "link").symlink_to(scene.top / "ssl-parent/ssl")
    scene.operator(OPEN)
    grant = scene.grant(f"fs_write: ['{path}']")
    assert scene.writes(grant) == ({given} if given else set())
    if given is None:
        assert f"{scene.top}/{says}" in grant.refused[0].reason
        assert grant.refused[0].asked == path


def test_climbing_above_a_root_gives_the_root_and_no_more(scene: Scene) -> None:
    """`./out/../..` is the home folder, which is broader than the root: cut down to it, and the cut knows what was meant (C-06)."""
    scene.operator(OPEN)
    grant = scene.grant("fs_write: ['./out/../..']")
    assert scene.writes(grant) == {"out"}
    assert grant.narrowed[0].resolved == scene.home


@pytest.mark.parametrize(("cwd", "base"), [("workspace", "home/work"), ("skill", "home/skills/demo")])
@pytest.mark.parametrize("path", ["data", "./data"])
def test_relative_paths_start_where_the_script_does(
    scene: Scene, cwd: str, base: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relative means the folder the script runs in, from any folder of the caller (C-10)."""
    scene.operator(f'sandbox: {{fs_read: ["{scene.top}"]}}\n')
    text = f"fs_read: ['{path}']\nmetadata: {{skillrun: {{cwd: {cwd}}}}}"
    for folder in ("/", str(scene.skill)):
        monkeypatch.chdir(folder)
        grant = scene.grant(text)
        assert grant.capabilities.fs_read == {scene.top / base / "data"}
        assert grant.cwd is Cwd(cwd)


def test_ceiling_paths_are_relative_to_their_file(scene: Scene) -> None:
    """In a file of `--ceiling` and in a project file relative means the folder of that file (C-10)."""
    scene.ceiling = scene.write("home/work/ci/named.yaml", "sandbox: {fs_read: [./shared]}\n")
    assert scene.reads(scene.grant("fs_read: ['.']")) == {"ci/shared"}
    scene.project("sandbox: {fs_read: [ci/shared/x]}\n")
    assert scene.reads(scene.grant("fs_read: ['.']")) == {"ci/shared/x"}


def test_a_tilde_is_the_callers_home_and_no_folder_of_that_name(scene: Scene) -> None:
    """`~/` is expanded once; without a home it is an error; nothing is made (C-11)."""
    scene.operator('sandbox: {fs_read: ["~/notes"]}\n')
    assert scene.grant("fs_read: ['~/notes/a']").capabilities.fs_read == {scene.home / "notes/a"}
    skill, layers = scene.make("fs_read: ['~/notes']"), scene.layers()
    homeless = Place(scene.workspace, scene.skill, scene.top / "scratch")
    with pytest.raises(ConfigError):
        decide(skill, layers, homeless, digest=DIGEST)
    scene.operator('sandbox: {fs_read: ["${workspace}"]}\n')
    with pytest.raises(SkillError) as caught:
        decide(skill, scene.layers(), homeless, digest=DIGEST)
    assert caught.value.problem.rule == "request-path"
    assert not (scene.workspace / "~").exists()


def test_a_dangling_link_lets_no_write_out(scene: Scene) -> None:
    """A write path that is a link to nothing is refused, and nothing is made at its target (C-13)."""
    target = scene.top / "outside" / "new.txt"
    target.parent.mkdir()
    (scene.workspace / "out").symlink_to(target)
    scene.operator('sandbox: {fs_read: ["${workspace}"], fs_write: ["${workspace}"]}\n')
    grant = scene.grant("fs_write: ['./out']")
    assert grant.capabilities.fs_write == frozenset()
    assert grant.missing == ()
    assert "link" in grant.refused[0].reason
    assert not target.exists()


def test_a_link_that_the_skill_ships_is_judged_by_its_target(scene: Scene) -> None:
    """`data -> ~/.ssh` is `~/.ssh`: outside the ceiling, refused with both spellings (C-14)."""
    secret = scene.home / ".ssh"
    secret.mkdir()
    (scene.skill / "data").symlink_to(secret)
    scene.operator(f'sandbox: {{fs_read: ["{scene.home}/skills"]}}\n')
    grant = scene.grant("fs_read: ['./data']\nmetadata: {skillrun: {cwd: skill}}")
    assert grant.capabilities.fs_read == frozenset()
    assert grant.refused[0].asked == "./data"
    assert str(secret) in grant.refused[0].reason


def test_a_link_inside_the_ceiling_is_granted_as_its_target(scene: Scene) -> None:
    """The grant holds the physical path; the link node is told, since the script will open that."""
    (scene.workspace / "real").mkdir()
    (scene.workspace / "data").symlink_to("real")
    grant = scene.grant("fs_read: ['./data']")
    assert scene.reads(grant) == {"real"}
    assert grant.links == (scene.workspace / "data",)


def test_every_cut_names_both_lines(scene: Scene) -> None:
    """What was asked and what limited it each come with file, line and column."""
    scene.operator('sandbox:\n  fs_read: ["${workspace}/a", "${workspace}/b"]\n  timeout: 10\n')
    grant = scene.grant("fs_read: ['.', /etc]\ntimeout: 30")
    [paths] = [n for n in grant.narrowed if n.capability is Capability.FS_READ]
    [time] = [n for n in grant.narrowed if n.capability is Capability.TIMEOUT]
    [refused] = grant.refused
    assert paths.given == (f"{scene.workspace}/a", f"{scene.workspace}/b")
    assert (paths.asked_at.line, paths.asked_at.column) == (2, 11)
    assert (paths.limit_at.path, paths.limit_at.line) == (scene.config, 2)
    assert (time.asked, time.given, time.limit_at.line) == (30, (10,), 3)
    assert (refused.asked, refused.limit_at.path, refused.limit_at.line) == ("/etc", scene.config, 2)


def test_a_refusal_names_the_layer_that_refused(scene: Scene) -> None:
    """Where a project narrows, the project's line is named and not the operator's."""
    file = scene.project("sandbox:\n  fs_read: [data]\n")
    assert scene.grant("fs_read: ['./other']").refused[0].limit_at.path == file
    narrowed = scene.grant("fs_read: ['.']").narrowed[0]
    assert (narrowed.limit_at.path, narrowed.limit_at.line) == (file, 2)


def test_a_granted_item_says_what_was_asked_and_what_allowed_it(scene: Scene) -> None:
    """The whole chain is there for show: spelling, physical path, the ceiling's line."""
    grant = scene.grant("fs_read: ['./data/../data']")
    item = next(i for i in grant.granted if i.capability is Capability.FS_READ)
    assert (item.asked, item.value, str(item.limit_at)) == (
        "./data/../data",
        f"{scene.workspace}/data",
        "preset default",
    )


def test_write_includes_read_on_both_sides(scene: Scene) -> None:
    """A write root of the ceiling may be read, and what is granted for writing is readable."""
    scene.operator('sandbox: {fs_read: [], fs_write: ["${workspace}/out"]}\n')
    assert scene.reads(scene.grant("fs_read: ['.']")) == {"out"}
    assert scene.reads(scene.grant("fs_write: ['out/x']")) == {"out/x"}


def test_the_reading_in_a_refused_writing_is_left(scene: Scene) -> None:
    """Who asks to write where only reading is allowed may read there: the meet of both sides' rights, told as such."""
    grant = scene.grant("fs_write: ['data']")
    assert (scene.reads(grant), scene.writes(grant)) == ({"data"}, set())
    assert [r.capability for r in grant.refused] == [Capability.FS_WRITE]
    [item] = [i for i in grant.granted if i.capability is Capability.FS_READ]
    assert (item.asked, item.at.line) == ("data", 2)
    scene.operator('sandbox: {fs_read: ["${workspace}"], fs_write: ["${workspace}/data/out"]}\n')
    grant = scene.grant("fs_write: ['data']")
    assert (scene.reads(grant), scene.writes(grant)) == ({"data"}, {"data/out"})


@pytest.mark.parametrize(
    ("path", "folder"),
    [("out", True), ("out/deep", True), ("out/a.txt", False), ("out/a.txt/", True), ("out/.cache", True)],
)
def test_missing_write_paths_are_to_be_made(scene: Scene, path: str, *, folder: bool) -> None:
    """A write path that does not exist is listed with what it becomes; nothing is made here."""
    scene.operator(OPEN)
    grant = scene.grant(f"fs_write: ['{path}']")
    assert grant.missing == ((scene.workspace / path.rstrip("/"), folder),)
    assert not (scene.workspace / "out").exists()
    (scene.workspace / path.rstrip("/")).mkdir(parents=True)
    assert scene.grant(f"fs_write: ['{path}']").missing == ()


def test_a_narrowed_write_path_is_made_as_the_ceiling_spells_it(scene: Scene) -> None:
    """`.` cut down to a missing root makes that root."""
    scene.operator(OPEN)
    assert scene.grant("fs_write: ['.']").missing == ((scene.workspace / "out", True),)


def test_an_error_in_the_request_grants_nothing(scene: Scene) -> None:
    """A skill whose request has an error cannot run, whatever else it asks for (law 3)."""
    with pytest.raises(SkillError) as caught:
        scene.grant("fs_read: ['.']\ntimeout: soon\nnetwork: maybe")
    assert [p.rule for p in caught.value.problems] == ["request-type", "request-type"]


def test_a_skill_that_is_not_valid_grants_nothing(scene: Scene) -> None:
    """No front matter, or an error found when it was read, stops the decision."""
    from dataclasses import replace

    skill = scene.make("fs_read: ['.']")
    for broken in (
        replace(skill, front=None),
        replace(skill, problems=(error("front-matter-yaml", "broken"),)),
    ):
        with pytest.raises(SkillError):
            decide(broken, scene.layers(), scene.place, digest=DIGEST)


def test_host_lists_are_cut_and_shown(scene: Scene) -> None:
    """Lists meet pairwise by the host rules; `true` is narrowed to the list; what is left is in the grant."""
    scene.operator("sandbox: {network: ['*.example.com:443', 'b.org:1-100']}\n")
    grant = scene.grant("network: [a.example.com, example.com, 'b.org:50-200', c.org]")
    assert sorted(map(str, grant.capabilities.network.endpoints)) == ["a.example.com:443", "b.org:50-100"]
    assert [r.asked for r in grant.refused] == ["example.com:443", "c.org:443"]
    assert [(n.asked, n.given) for n in grant.narrowed] == [("b.org:50-200", ("b.org:50-100",))]
    grant = scene.grant("network: true")
    assert grant.narrowed[0].given == ("*.example.com:443", "b.org:1-100")
    assert not grant.capabilities.network.everything


def test_a_secret_variable_is_not_passed_by_asking(scene: Scene) -> None:
    """A provider key, a loader and an interpreter variable are refused with the reason, also where the ceiling lists them (B-17)."""
    names = [
        "OPENAI_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "LD_PRELOAD",
        "PYTHONPATH",
        "NODE_OPTIONS",
        "PATH",
        "http_proxy",
        "BASH_ENV",
    ]
    scene.operator(f"sandbox: {{env: [{', '.join(names)}, COLUMNS]}}\n")
    grant = scene.grant(f"metadata: {{skillrun: {{env: [{', '.join(names)}, COLUMNS, EDITION]}}}}")
    assert grant.capabilities.env == {"COLUMNS"}
    assert [r.asked for r in grant.refused] == [*names, "EDITION"]
    assert all("never passed" in r.reason for r in grant.refused[:-1])


def test_what_every_run_has_is_no_cut(scene: Scene) -> None:
    """Asking for TZ, which is set anyway, is neither granted nor refused where the ceiling is silent."""
    grant = scene.grant("metadata: {skillrun: {env: [TZ]}}")
    assert (grant.capabilities.env, grant.refused) == (frozenset(), ())


def test_limits_take_the_smaller_one_by_one(scene: Scene) -> None:
    """A smaller wish is granted, a larger one narrowed, an absent one is the ceiling's."""
    grant = scene.grant("metadata: {skillrun: {limits: {memory: 1GiB, processes: 1000}}}")
    limits = grant.capabilities.limits
    assert (limits.memory, limits.processes, limits.file_size) == (2**30, 256, 2**30)
    assert [(n.asked, n.given) for n in grant.narrowed] == [("processes=1000", ("processes=256",))]


class TestFlags:
    """Flags of one run: the operator speaking (DESIGN 7.5)."""

    def test_a_flag_asks_and_raises(self, scene: Scene) -> None:
        """`--read` and the others give what nobody asked for and the base did not allow."""
        (scene.top / "else").mkdir()
        flags = Flags(
            read=(str(scene.top / "else"),), write=("gen",), network=("a.com",), env=("EDITION",), timeout=500
        )
        grant = scene.grant("timeout: 5", flags=flags)
        assert grant.capabilities.fs_read == {scene.top / "else", scene.workspace / "gen"}
        assert scene.writes(grant) == {"gen"}
        assert grant.missing == ((scene.workspace / "gen", True),)
        assert grant.capabilities.network.allows("a.com", 443)
        assert grant.capabilities.env == {"EDITION"}
        assert grant.capabilities.timeout == 500
        assert {i.at.flag for i in grant.granted} == {"--read", "--write", "--network", "--env", "--timeout"}

    def test_flags_go_past_a_project_but_not_past_floor_machine_and_deny(self, scene: Scene) -> None:
        """A cloned file does not overrule the person; floors, the machine file and every deny do."""
        scene.operator('floor: {timeout: 50, fs_write: ["${workspace}/a"], network: [a.com]}\n')
        scene.project("sandbox: {fs_read: [data], timeout: 10, deny: [hidden]}\n")
        scene.machine = scene.write("m.yaml", "sandbox: {env: []}\n")
        flags = Flags(
            read=("other", "hidden/x"), write=("a/b", "c"), network=True, env=("EDITION",), timeout=500
        )
        grant = scene.grant("", flags=flags)
        # The floor limits writing alone, so the reading that `--write c` includes is left.
        assert scene.reads(grant) == {"other", "a/b", "c"}
        assert scene.writes(grant) == {"a/b"}
        assert sorted(map(str, grant.capabilities.network.endpoints)) == ["a.com:443"]
        assert grant.capabilities.env == frozenset()
        assert grant.capabilities.timeout == 50
        assert {r.asked for r in grant.refused} == {"hidden/x", "c", "EDITION"}

    def test_a_floor_on_reading_holds_for_flags(self, scene: Scene) -> None:
        """A floor that limits reading alone is not undone by saying nothing about writing."""
        scene.operator('floor: {fs_read: ["${workspace}/a"]}\n')
        assert scene.reads(scene.grant("", flags=Flags(read=("a/x", "b")))) == {"a/x"}

    def test_a_secret_needs_the_file(self, scene: Scene) -> None:
        """No flag gives a secret: that takes a line in the operator's file."""
        scene.write("home/work/.env", "KEY=1")
        assert scene.reads(scene.grant("", flags=Flags(read=(".env",)))) == set()

    @pytest.mark.parametrize(
        "flags",
        [
            Flags(read=("a*",)),
            Flags(write=("$X",)),
            Flags(network=("*",)),
            Flags(timeout=0),
            Flags(timeout=float("nan")),
        ],
    )
    def test_a_wrong_flag_is_a_usage_error(self, scene: Scene, flags: Flags) -> None:
        """A flag that cannot mean one thing stops the call."""
        with pytest.raises(UsageError) as caught:
            scene.grant("", flags=flags)
        assert caught.value.problem.rule == "flag-value"


class TestArguments:
    """Typed arguments: a path that a person typed is granted for reading, within the ceiling (DESIGN 7.6)."""

    def test_an_existing_path_inside_is_granted(self, scene: Scene) -> None:
        """Files and folders, relative and absolute, and the value of an option; shown as from an argument."""
        for name in ("a.txt", "b.txt", "d/c.txt"):
            scene.write(f"home/work/{name}")
        grant = scene.grant(
            "", arguments=["a.txt", str(scene.workspace / "b.txt"), "--in=d", "-v", "plain", "", "x" * 5000]
        )
        assert scene.reads(grant) == {"a.txt", "b.txt", "d"}
        assert scene.writes(grant) == set()
        items = [i for i in grant.granted if i.capability is Capability.FS_READ]
        assert {i.at.flag for i in items} == {"argument"}
        assert [i.asked for i in items] == ["a.txt", str(scene.workspace / "b.txt"), "d"]

    def test_what_is_outside_is_not(self, scene: Scene) -> None:
        """Outside the read roots, by `..`, by a link that leaves them, a missing path, text with NUL: no grant, no error."""
        scene.write("else.txt")
        (scene.workspace / "out-link").symlink_to(scene.top / "else.txt")
        grant = scene.grant(
            "",
            arguments=[
                "../../else.txt",
                "out-link",
                str(scene.top / "else.txt"),
                "none.txt",
                "a\0b",
                "/",
                "~",
            ],
        )
        assert scene.reads(grant) == set()
        assert grant.refused == ()

    def test_never_a_secret_or_a_denied_path(self, scene: Scene) -> None:
        """`.env`, something in a denied folder, and a link to one of them are refused and said."""
        scene.operator("sandbox: {deny: [private]}\n")
        for name in (".env", "private/x", "sub/.npmrc", "ok"):
            scene.write(f"home/work/{name}")
        (scene.workspace / "alias").symlink_to(".env")
        grant = scene.grant("", arguments=[".env", "private/x", "private", "sub/.npmrc", "ok"])
        assert scene.reads(grant) == {"ok"}
        assert {r.asked for r in grant.refused} == {".env", "private/x", "private", "sub/.npmrc"}
        assert [r.asked for r in scene.grant("", arguments=["alias"]).refused] == ["alias"]

    def test_a_link_inside_the_roots_is_its_target(self, scene: Scene) -> None:
        """A link that stays inside is granted as what it leads to."""
        scene.write("home/work/real.txt")
        (scene.workspace / "alias").symlink_to("real.txt")
        assert scene.reads(scene.grant("", arguments=["alias"])) == {"real.txt"}

    def test_arguments_are_relative_to_the_scripts_folder(self, scene: Scene) -> None:
        """With `cwd: skill` a name means the skill's file, which no read root covers."""
        scene.write("home/work/a.txt")
        grant = scene.grant("metadata: {skillrun: {cwd: skill}}", arguments=["a.txt"])
        assert scene.reads(grant) == set()

    def test_a_project_narrows_arguments(self, scene: Scene) -> None:
        """The ceiling that counts is the one after every layer."""
        scene.write("home/work/a.txt")
        scene.project("sandbox: {fs_read: [data]}\n")
        assert scene.reads(scene.grant("", arguments=["a.txt"])) == set()


def test_the_decision_is_one_value(scene: Scene) -> None:
    """The same question has the same answer, and asking changes nothing on disk (law 6)."""
    scene.operator(OPEN)
    before = sorted(os.walk(scene.top))
    skill, layers = scene.make("fs_read: ['.']\nfs_write: [out]\nnetwork: true"), scene.layers()
    first = decide(skill, layers, scene.place, digest=DIGEST)
    assert first == decide(skill, layers, scene.place, digest=DIGEST)
    assert hash(first) == hash(decide(skill, layers, scene.place, digest=DIGEST))
    assert sorted(os.walk(scene.top)) == before


def test_approval_and_scripts_come_along(scene: Scene) -> None:
    """`approval: true` is in the grant."""
    assert scene.grant("metadata: {skillrun: {approval: true}}").approval is True
    assert scene.grant("").approval is False
