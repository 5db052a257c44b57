"""Layers: who speaks, for which skills, and who is not heard (DESIGN 7.1 to 7.4)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from permission_scene import DIGEST, Scene, text_skill

from skillrun.errors import ConfigError
from skillrun.permissions.config import preset_names, read_preset
from skillrun.permissions.decide import decide
from skillrun.permissions.grant import Capability, Requirement, Unconfined
from skillrun.permissions.layers import operator_tools

OTHER = "sha256:" + "1" * 64


def rule(scene: Scene) -> tuple[str, int | None]:
    """Load the layers, which must fail; return the rule and the line."""
    with pytest.raises(ConfigError) as caught:
        scene.layers()
    problem = caught.value.problem
    assert problem.at is not None
    return problem.rule, problem.at.line


class TestBase:
    """The base: the flag, else the operator's file, else `default`."""

    def test_the_flag_replaces_the_operators_file(self, scene: Scene) -> None:
        """A preset or a file named by `--ceiling` is the base; the operator's `sandbox` is not mixed in."""
        scene.operator('sandbox: {fs_write: ["${workspace}"], timeout: 7}\n')
        scene.ceiling = "reader"
        grant = scene.grant("fs_write: ['.']")
        assert (scene.writes(grant), grant.capabilities.timeout) == (set(), 30)
        scene.ceiling = scene.write("mine.yaml", "sandbox: {timeout: 9}\n")
        assert scene.grant("").capabilities.timeout == 9
        scene.ceiling = "../../mine.yaml"
        assert scene.grant("").capabilities.timeout == 9

    def test_a_floor_of_the_operator_holds_beside_the_flag(self, scene: Scene) -> None:
        """No flag goes past the floor."""
        scene.operator("floor: {timeout: 5, require: full}\n")
        scene.ceiling = "dev"
        grant = scene.grant("")
        assert (grant.capabilities.timeout, grant.require) == (5, Requirement.FULL)

    @pytest.mark.parametrize(
        ("name", "help_"),
        [
            ("readers", "did you mean `reader`?"),
            ("Default", "did you mean `default`?"),
            ("strict", "presets are"),
        ],
    )
    def test_an_unknown_preset_is_an_error(self, scene: Scene, name: str, help_: str) -> None:
        """A mistyped preset is no file and no default."""
        scene.ceiling = name
        with pytest.raises(ConfigError) as caught:
            scene.layers()
        assert caught.value.problem.rule == "ceiling-preset"
        assert help_ in (caught.value.problem.help or "")

    def test_a_missing_ceiling_file_is_an_error(self, scene: Scene) -> None:
        """A named file that is not there is said, not replaced by the default (C-18 d)."""
        scene.ceiling = scene.top / "none.yaml"
        assert rule(scene)[0] == "ceiling-unreadable"

    @pytest.mark.parametrize("name", ["default", "reader", "converter", "api", "dev"])
    def test_presets_read_and_give_reasons(self, scene: Scene, name: str) -> None:
        """Every preset is valid, names itself as the place of its values, and has a comment above each key."""
        assert name in preset_names()
        config = read_preset(name)
        assert config.sandbox is not None
        assert config.sandbox.timeout is not None
        assert config.sandbox.timeout.at.preset == name
        scene.ceiling = name
        grant = scene.grant("fs_read: ['.']\nfs_write: [out]\nnetwork: true")
        assert grant.require is Requirement.CONFINED
        assert grant.capabilities.network.everything == (name == "api")
        assert scene.writes(grant) == ({"out"} if name in {"converter", "api", "dev"} else set())


class TestProjects:
    """Project files narrow, from the repository's root down."""

    def test_every_file_from_the_root_down_counts(self, scene: Scene) -> None:
        """Both the repository's and the workspace's file narrow, and what is above the repository is not read."""
        (scene.home / ".git").mkdir()
        scene.write("skillrun.yaml", "nonsense: true\n")
        scene.write("home/skillrun.yaml", "sandbox: {timeout: 40}\n")
        scene.project("sandbox: {fs_read: [data]}\n")
        grant = scene.grant("fs_read: ['.']\ntimeout: 50")
        assert (scene.reads(grant), grant.capabilities.timeout) == ({"data"}, 40)

    def test_without_a_repository_only_the_workspaces_own(self, scene: Scene) -> None:
        """No `.git`: the folder above says nothing."""
        scene.write("home/skillrun.yaml", "sandbox: {timeout: 40}\n")
        assert scene.grant("").capabilities.timeout == 60

    @pytest.mark.parametrize(
        "text",
        [
            "sandbox:\n  fs_read: [..]\n",
            "sandbox:\n  fs_read: ['/']\n",
            "sandbox:\n  fs_read: ['~/']\n",
            "sandbox:\n  fs_read: ['${skill}']\n",
            "sandbox:\n  fs_write: [out]\n",
            "sandbox:\n  network: true\n",
            "sandbox:\n  network: [a.com]\n",
            "sandbox:\n  timeout: 61\n",
            "sandbox:\n  env: [EDITION]\n",
            "sandbox:\n  limits: {processes: 257}\n",
            "sandbox:\n  enabled: false\n",
            "sandbox:\n  require: none\n",
        ],
    )
    def test_wider_is_an_error_with_its_line(self, scene: Scene, text: str) -> None:
        """Each key that would give more than the base is refused where it stands."""
        scene.project(text)
        assert rule(scene) == ("ceiling-wider", 2)

    def test_wider_than_the_file_above_is_wider(self, scene: Scene) -> None:
        """A deeper file cannot take back what an outer one took."""
        (scene.home / ".git").mkdir()
        scene.operator("sandbox: {timeout: 100}\n")
        scene.write("home/skillrun.yaml", "sandbox: {timeout: 50}\n")
        scene.project("sandbox: {timeout: 60}\n")
        assert rule(scene) == ("ceiling-wider", 1)

    @pytest.mark.parametrize(
        "key", ["trusted: []", "interpreters: {}", "workspaces: []", "tools: {}", "floor: {}"]
    )
    def test_the_operators_sections_are_errors(self, scene: Scene, key: str) -> None:
        """A cloned folder does not speak about trust, interpreters or floors."""
        scene.project(f"{key}\n")
        assert rule(scene) == ("ceiling-project-key", 1)

    def test_the_file_of_the_flag_is_not_a_project_file_too(self, scene: Scene) -> None:
        """Who names the workspace's own file makes it the operator's word for this run."""
        scene.ceiling = scene.project("sandbox: {timeout: 300}\ntools: {max_tools: 3}\n")
        layers = scene.layers()
        assert (layers.projects, layers.tools.max_tools) == ((), 3)
        assert scene.grant("").capabilities.timeout == 300

    def test_require_goes_only_up(self, scene: Scene) -> None:
        """A project may ask for more enforcement."""
        scene.project("sandbox: {require: full}\n")
        assert scene.grant("").require is Requirement.FULL


class TestEntries:
    """`skills.<key>`: the operator speaks for a skill, bound to layer and version."""

    REQUEST = 'skills: {demo: {DIGEST request: {fs_read: ["${workspace}/docs"]}, ceiling: {timeout: 20}}}\n'

    def entry(self, digest: str = "") -> str:
        """Write the entry, pinned to a digest or not."""
        return self.REQUEST.replace("DIGEST", f'digest: "{digest}",' if digest else "")

    def test_a_request_replaces_the_skills_own(self, scene: Scene) -> None:
        """All of it: what the skill asked for itself is not asked any more; the place is the operator's line."""
        scene.operator(self.entry(DIGEST))
        grant = scene.grant(
            "fs_read: ['.']\nnetwork: true\nmetadata: {skillrun: {cwd: skill, approval: true}}"
        )
        assert scene.reads(grant) == {"docs"}
        assert (grant.refused, grant.capabilities.timeout) == ((), 20)
        assert next(i for i in grant.granted if i.capability is Capability.FS_READ).at.path == scene.config
        assert (grant.cwd.value, grant.approval) == ("skill", True)

    def test_another_version_is_warned_about_and_still_narrowed(self, scene: Scene) -> None:
        """The request of another version does not count; its ceiling does, so that an update is no way out."""
        scene.operator(self.entry(OTHER))
        grant = scene.grant("fs_read: ['data']")
        assert scene.reads(grant) == {"data"}
        assert grant.capabilities.timeout == 20
        assert [w.rule for w in grant.warnings] == ["skill-entry-digest"]

    def test_a_stranger_of_the_same_name_is_not_bound(self, scene: Scene) -> None:
        """A skill from the project's own roots does not get what the operator said about another one."""
        scene.operator(self.entry())
        folder = scene.workspace / "skills/demo"
        folder.mkdir(parents=True)
        stranger = text_skill("name: demo", folder, root=scene.workspace / "skills")
        grant = decide(stranger, scene.layers(), scene.place, digest=DIGEST)
        assert (scene.reads(grant), grant.capabilities.timeout) == (set(), 60)

    def test_a_pinned_version_named_by_folder_is_bound(self, scene: Scene) -> None:
        """The operator pinned these bytes and names them now: `run ./skills/demo` after `adopt`; without a digest not."""
        folder = scene.workspace / "skills/demo"
        folder.mkdir(parents=True)
        named = text_skill("name: demo", folder, root=None)
        scene.operator(self.entry(DIGEST))
        assert scene.reads(decide(named, scene.layers(), scene.place, digest=DIGEST)) == {"docs"}
        assert scene.reads(decide(named, scene.layers(), scene.place, digest=OTHER)) == set()
        scene.operator(self.entry())
        assert scene.reads(decide(named, scene.layers(), scene.place, digest=DIGEST)) == set()

    def test_entries_of_the_flags_file_bind_to_what_is_named_beside_it(self, scene: Scene) -> None:
        """By folder or `--skills`, not to a skill that was found by itself."""
        scene.ceiling = scene.write("named.yaml", self.entry())
        assert scene.reads(scene.grant("")) == set()
        scene.extra = {"named_roots": (scene.home / "skills",)}
        assert scene.reads(scene.grant("")) == {"docs"}
        assert scene.reads(decide(scene.make("", root=None), scene.layers(), scene.place, digest=DIGEST)) == {
            "docs"
        }

    def test_a_projects_entries_bind_to_its_own_skills(self, scene: Scene) -> None:
        """A repository speaks for skills that lie in it, within the ceiling."""
        scene.project("skills: {demo: {request: {fs_read: [docs, /etc]}, ceiling: {timeout: 20}}}\n")
        folder = scene.workspace / "skills/demo"
        folder.mkdir(parents=True)
        inside = text_skill("name: demo", folder, root=scene.workspace / "skills")
        grant = decide(inside, scene.layers(), scene.place, digest=DIGEST)
        assert (scene.reads(grant), grant.capabilities.timeout) == ({"docs"}, 20)
        assert [r.asked for r in grant.refused] == ["/etc"]
        assert scene.grant("").capabilities.timeout == 60

    def test_an_entrys_ceiling_cannot_widen(self, scene: Scene) -> None:
        """A larger number there has no effect: it narrows once more."""
        scene.operator("sandbox: {timeout: 30}\nskills: {demo: {ceiling: {timeout: 300, network: true}}}\n")
        grant = scene.grant("network: true")
        assert grant.capabilities.timeout == 30
        assert not grant.capabilities.network


class TestTrust:
    """`trust: core` is a request; only the operator's list with the digest grants it."""

    LISTED = f'trusted: [{{skill: ~/skills/demo, digest: "{DIGEST}"}}]\n'

    def test_a_skill_cannot_trust_itself(self, scene: Scene) -> None:
        """Without a list the run stays confined and the refusal is shown."""
        grant = scene.grant("trust: core")
        assert grant.unconfined is None
        assert [r.capability for r in grant.refused] == [Capability.TRUST]

    def test_listed_with_this_digest_it_is_unconfined(self, scene: Scene) -> None:
        """The run says so, and the item names both lines."""
        scene.operator(self.LISTED)
        grant = scene.grant("trust: core")
        assert grant.unconfined is Unconfined.TRUSTED
        assert grant.require is Requirement.NONE
        item = next(i for i in grant.granted if i.capability is Capability.TRUST)
        assert (item.value, item.at.line, item.limit_at.path) == ("core", 2, scene.config)

    def test_another_digest_another_folder_or_no_wish_is_not(self, scene: Scene) -> None:
        """The version, the place and the skill's own wish all count."""
        scene.operator(self.LISTED)
        changed = scene.grant("trust: core", digest=OTHER)
        assert changed.unconfined is None
        assert "digest" in changed.refused[0].reason
        assert scene.grant("").unconfined is None
        scene.operator(self.LISTED.replace("skills/demo", "skills/other"))
        assert scene.grant("trust: core").unconfined is None

    def test_a_machine_requirement_forbids_it(self, scene: Scene) -> None:
        """Who owns the machine stands above; the file's own floor does not contradict its own list."""
        scene.operator(self.LISTED + "floor: {require: confined}\n")
        assert scene.grant("trust: core").unconfined is Unconfined.TRUSTED
        scene.machine = scene.write("m.yaml", "sandbox: {require: confined}\n")
        grant = scene.grant("trust: core")
        assert grant.unconfined is None
        assert grant.refused[0].limit_at.path == scene.machine

    def test_the_flag_leaves_the_operators_list_aside(self, scene: Scene) -> None:
        """`--ceiling reader` means confined by `reader`; a list in the flag's own file is bound by the operator's floor."""
        scene.operator(self.LISTED)
        scene.ceiling = "reader"
        assert scene.grant("trust: core").unconfined is None
        scene.ceiling = scene.write("named.yaml", self.LISTED)
        assert scene.grant("trust: core").unconfined is Unconfined.TRUSTED
        scene.operator("floor: {require: confined}\n")
        assert scene.grant("trust: core").unconfined is None


class TestDisabled:
    """`enabled: false`: every run is unconfined, unless somebody above or beside asks for confinement."""

    def test_it_is_unconfined_and_says_so(self, scene: Scene) -> None:
        """The reason is in the grant; what was granted is still worked out."""
        scene.operator("sandbox: {enabled: false}\n")
        grant = scene.grant("fs_read: ['.']")
        assert grant.unconfined is Unconfined.DISABLED
        assert scene.reads(grant) == {"."}

    @pytest.mark.parametrize(
        "extra", ["floor: {require: confined}\n", "skills: {demo: {ceiling: {require: full}}}\n"]
    )
    def test_a_floor_keeps_it_confined(self, scene: Scene, extra: str) -> None:
        """A requirement elsewhere wins, with a warning that names it."""
        scene.operator(f"sandbox: {{enabled: false}}\n{extra}")
        grant = scene.grant("")
        assert grant.unconfined is None
        assert grant.require is not Requirement.NONE
        assert [w.rule for w in grant.warnings] == ["ceiling-enabled"]

    def test_the_machine_and_a_project_can_keep_it_confined(self, scene: Scene) -> None:
        """`enabled: true` of a narrowing layer holds; `false` of the machine file is an error, since it only narrows."""
        scene.operator("sandbox: {enabled: false}\n")
        scene.project("sandbox: {enabled: true}\n")
        assert scene.grant("").unconfined is None
        scene.project("sandbox: {}\n")
        assert scene.grant("").unconfined is Unconfined.DISABLED
        scene.machine = scene.write("m.yaml", "sandbox: {enabled: false}\n")
        assert rule(scene) == ("ceiling-wider", 1)


def test_other_sections_are_exposed(scene: Scene) -> None:
    """Interpreters stay as written (a link there is meant), workspaces become physical, the flag's file comes first."""
    (scene.top / "real").mkdir()
    (scene.home / "ws").symlink_to(scene.top / "real")
    scene.operator(
        "interpreters: {python: ~/venv/bin/python, node: /opt/node}\nworkspaces: [~/ws]\ntools: {max_tools: 9, approve: [network, write]}\n"
    )
    scene.ceiling = scene.write("named.yaml", "interpreters: {python: py}\n")
    layers = scene.layers()
    assert dict(layers.interpreters) == {"python": scene.top / "py", "node": Path("/opt/node")}
    assert layers.workspaces == (scene.top / "real",)
    assert (layers.tools.max_tools, layers.tools.approve) == (9, ("network", "write"))


def test_a_ceiling_root_that_leads_nowhere_allows_nothing(scene: Scene) -> None:
    """A dangling root is a warning in every result, and not the place it points to."""
    (scene.workspace / "link").symlink_to(scene.top / "nowhere")
    scene.operator('sandbox: {fs_read: ["${workspace}/link"]}\n')
    grant = scene.grant("fs_read: ['.']")
    assert scene.reads(grant) == set()
    assert [w.rule for w in grant.warnings] == ["ceiling-path"]


def test_layers_are_a_value(scene: Scene) -> None:
    """Loading twice gives equal, hashable layers; describing them lists every value with its place."""
    scene.operator(
        'sandbox: {fs_read: ["${workspace}", "~/lib"], network: [a.com], env: []}\nfloor: {timeout: 9}\n'
    )
    scene.project("sandbox: {deny: [x], limits: {processes: 2}}\n")
    first = scene.layers()
    assert first == scene.layers()
    assert hash(first) == hash(scene.layers())
    lines = {(line.layer, line.key, line.value): line.at for line in first.describe()}
    own = "the operator's own file"
    assert lines[own, "fs_read", "~/lib"].path == scene.config
    assert lines[own, "network", "a.com:443"].line == 1
    assert lines[own, "timeout", 60].preset == "default"
    assert (own, "env", None) in lines
    assert ("a project file", "limits.processes", 2) in lines
    assert ("floor or machine file", "timeout", 9) in lines


class TestHostile:
    """Files of a hostile repository: nothing gained, and said clearly."""

    def test_a_spoofed_section(self, scene: Scene) -> None:
        """A repository cannot list itself as trusted, nor speak for a skill of the operator's."""
        scene.project(f'trusted: [{{skill: ~/skills/demo, digest: "{DIGEST}"}}]\n')
        assert rule(scene)[0] == "ceiling-project-key"
        scene.project('skills: {demo: {request: {fs_read: ["${workspace}"], network: true}}}\n')
        assert scene.reads(scene.grant("")) == set()

    def test_a_link_for_a_project_file(self, scene: Scene) -> None:
        """A link is an error, to a good file, to nothing, and to a device."""
        for target in (scene.write("good.yaml", "sandbox: {}\n"), scene.top / "none", Path("/dev/zero")):
            link = scene.workspace / "skillrun.yaml"
            link.unlink(missing_ok=True)
            link.symlink_to(target)
            assert rule(scene)[0] == "ceiling-link"

    def test_a_file_that_others_can_write(self, scene: Scene) -> None:
        """World-writable, or writable by a group that is not the user's own, is an error; the user's group is fine."""
        file = scene.project("sandbox: {}\n")
        file.chmod(0o666)
        assert rule(scene)[0] == "ceiling-owner"
        file.chmod(0o664)
        scene.layers()

    @pytest.mark.skipif(os.geteuid() != 0, reason="giving a file away needs root")
    def test_a_file_of_another_user(self, scene: Scene) -> None:
        """A file that somebody else owns is an error, also when only its group is foreign and may write."""
        file = scene.project("sandbox: {}\n")
        os.chown(file, 12345, 0)
        assert rule(scene)[0] == "ceiling-owner"
        os.chown(file, 0, 12345)
        file.chmod(0o664)
        assert rule(scene)[0] == "ceiling-owner"

    def test_the_operators_own_file_is_checked_as_well(self, scene: Scene) -> None:
        """The operator's file may be a link, but not one that others can write."""
        real = scene.write("dotfiles/skillrun.yaml", "sandbox: {timeout: 8}\n")
        scene.config = scene.home / ".config/skillrun.yaml"
        scene.config.symlink_to(real)
        assert scene.grant("").capabilities.timeout == 8
        real.chmod(0o606)
        assert rule(scene)[0] == "ceiling-owner"

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
    @pytest.mark.parametrize("theirs", [".git", "skillrun.yaml"])
    def test_a_folder_of_everybody_is_no_repository_of_others(self, scene: Scene, theirs: str) -> None:
        """`.git` and skillrun.yaml of others in a folder like /tmp speak to nobody below it."""
        scene.home.chmod(0o1777)
        (scene.home / ".git").mkdir()
        scene.write("home/skillrun.yaml", "sandbox: {timeout: 1}\n")
        assert scene.grant("").capabilities.timeout == 1
        os.chown(scene.home / theirs, 12345, 12345)
        assert scene.grant("").capabilities.timeout == 60

    def test_opening_a_repository_to_everybody_drops_no_limit(self, scene: Scene) -> None:
        """A script that may write in it can do that, and what limits the next run must not be lost by it."""
        (scene.home / ".git").mkdir()
        scene.write("home/skillrun.yaml", "sandbox: {timeout: 1}\n")
        for mode in (0o755, 0o777, 0o1777):
            scene.home.chmod(mode)
            assert scene.grant("").capabilities.timeout == 1

    def test_a_repository_in_a_repository_drops_no_limit(self, scene: Scene) -> None:
        """A `.git` that a script made where it could write does not end the way up to what limits it."""
        (scene.home / ".git").mkdir()
        scene.write("home/skillrun.yaml", "sandbox: {timeout: 1}\n")
        (scene.workspace / ".git").mkdir()
        assert scene.grant("").capabilities.timeout == 1

    def test_a_fifo_and_a_folder_for_a_file(self, scene: Scene) -> None:
        """Neither hangs nor is read."""
        os.mkfifo(scene.workspace / "skillrun.yaml")
        assert rule(scene)[0] == "ceiling-unreadable"
        (scene.workspace / "skillrun.yaml").unlink()
        (scene.workspace / "skillrun.yaml").mkdir()
        assert rule(scene)[0] == "ceiling-unreadable"

    def test_bombs(self, scene: Scene) -> None:
        """Aliases that multiply, deep nesting and 10 MB are errors, in a moment."""
        bomb = "a: &a [x,x,x,x,x,x,x,x]\n" + "".join(
            f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 8)}]\n" for i in range(12)
        )
        for text, name in (
            (bomb, "alias"),
            ("sandbox: " + "[" * 5000, "depth"),
            ("# " + "x" * 10_000_000, "too-large"),
        ):
            scene.project(text)
            assert rule(scene)[0] == f"ceiling-{name}"

    @pytest.mark.parametrize("line", ["${workspace}/out", "~/work/out", "${workspace}/out/deeper"])
    def test_a_planted_link_does_not_move_a_root(self, scene: Scene, line: str) -> None:
        """A cloned `out` that is a link to `~/private` makes `${workspace}/out` nothing, and not that folder."""
        (scene.home / "private").mkdir()
        (scene.workspace / "out").symlink_to(scene.home / "private")
        scene.operator(f'sandbox: {{fs_write: ["{line}"]}}\n')
        grant = scene.grant("fs_write: [out]\nfs_read: ['~/private']")
        assert (grant.capabilities.fs_write, grant.capabilities.fs_read) == (frozenset(), frozenset())
        assert [w.rule for w in grant.warnings] == ["ceiling-path"]
        assert str(scene.home / "private") in grant.warnings[0].message

    def test_a_planted_link_does_not_aim_a_flag(self, scene: Scene) -> None:
        """`--write out` means the folder of that name, not where a cloned link of that name leads."""
        from skillrun.permissions.flags import Flags

        (scene.home / "private").mkdir()
        (scene.workspace / "out").symlink_to(scene.home / "private")
        for path in ("out", f"{scene.workspace}/out", "${workspace}/out/x"):
            grant = scene.grant("", flags=Flags(write=(path,), read=(path,)))
            assert grant.capabilities.fs_read == frozenset()
            assert "link" in grant.refused[0].reason
        assert scene.grant("", flags=Flags(read=("~/private",))).capabilities.fs_read == {
            scene.home / "private"
        }

    def test_a_link_beside_the_file_of_the_flag(self, scene: Scene) -> None:
        """A path relative to a ceiling file stays in that file's folder, or climbs by its own text."""
        (scene.top / "ci").mkdir()
        (scene.top / "ci/shared").symlink_to(scene.home)
        scene.ceiling = scene.write("ci/named.yaml", "sandbox: {fs_read: [shared, ../else]}\n")
        grant = scene.grant(f"fs_read: ['{scene.top}']")
        assert grant.capabilities.fs_read == {scene.top / "else"}

    def test_a_planted_link_does_not_lead_a_request_out(self, scene: Scene) -> None:
        """A request through a link to somebody's folder is judged by that folder."""
        (scene.workspace / "out").symlink_to(scene.home / ".ssh")
        (scene.home / ".ssh").mkdir()
        scene.operator('sandbox: {fs_read: ["${workspace}"], fs_write: ["${workspace}"]}\n')
        grant = scene.grant("fs_write: [out]")
        assert grant.capabilities.fs_write == frozenset()
        assert str(scene.home / ".ssh") in grant.refused[0].reason


@pytest.mark.parametrize(
    ("named", "own", "machine", "said"),
    [
        (None, None, None, None),
        ("", "true", "", True),
        ("true", "", None, True),
        ("true", "false", None, False),
        ("", "true", "false", False),
        ("false", "true", "true", False),
    ],
)
def test_that_nobody_need_be_asked_all_must_say(
    scene: Scene, named: str | None, own: str | None, machine: str | None, said: object
) -> None:
    """`tools.unattended_approval` is true only where an operator's file says so and none says no; other keys stay beside it."""

    def written(name: str, value: str | None) -> Path | None:
        if value is None:
            return None
        path = scene.home / name
        path.write_text(
            f"tools: {{unattended_approval: {value}}}\n" if value else "tools: {approve: [write]}\n"
        )
        return path

    found = operator_tools(
        ceiling=written("named.yaml", named),
        here=scene.home,
        config_file=written("own.yaml", own),
        machine_file=written("machine.yaml", machine),
    )
    assert found.unattended_approval is said
    assert found.approve == (("write",) if "" in {named, own, machine} else None)


@pytest.mark.parametrize(
    ("named", "own", "machine", "found"),
    [
        (None, "[]", "[network]", ("network",)),
        ("[write]", "[read]", "[network, write]", ("write", "network")),
        ("[]", "[read]", None, ()),
        (None, None, "[]", ()),
        (None, None, None, None),
    ],
)
def test_no_file_takes_away_what_the_machine_wants_to_be_asked_about(
    scene: Scene, named: str | None, own: str | None, machine: str | None, found: object
) -> None:
    """`tools.approve` of the machine file holds beside the operator's, and its `max_tools` is a bound on theirs."""

    def written(name: str, value: str | None, most: int) -> Path | None:
        path = scene.home / name
        if value is not None:
            path.write_text(f"tools: {{approve: {value}, max_tools: {most}}}\n")
        return None if value is None else path

    tools = operator_tools(
        ceiling=written("named.yaml", named, 50),
        here=scene.home,
        config_file=written("own.yaml", own, 60),
        machine_file=written("machine.yaml", machine, 40),
    )
    assert tools.approve == found
    wanted = 40 if machine else 50 if named else 60 if own else None
    assert tools.max_tools == wanted
