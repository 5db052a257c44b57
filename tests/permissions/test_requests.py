"""Requests: strict types, both places, near keys, and three kinds of nothing (DESIGN 6; A-07, A-08, A-17, C-11)."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import pytest
from permission_scene import text_skill

from skillrun.permissions.grant import Capability, Cwd
from skillrun.permissions.request import Presence, Request, read_request
from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Read: TypeAlias = "Callable[[str], Request]"
TOP = ("fs_read", "fs_write", "network", "timeout", "trust")


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Read the request of a front matter."""
    return lambda text: read_request(text_skill(text, tmp_path))


def asked(request: Request, capability: Capability) -> list:
    """Return the values that are asked for of one capability."""
    return [one.value for one in request.of(capability)]


def rules(request: Request, severity: Severity = Severity.ERROR) -> list[str]:
    """Return the rules of the problems of one severity."""
    return [problem.rule for problem in request.problems if problem.severity is severity]


def test_the_seed_is_read_as_it_is_written(read: Read) -> None:
    """The five keys at top level, each value with its line and column."""
    text = 'name: d\nfs_read: ["./data", "/etc/hosts"]\nfs_write: ["./out"]\nnetwork: true\ntimeout: 30\ntrust: core   # no\n'
    request = read(text)
    assert request.problems == ()
    assert asked(request, Capability.FS_READ) == ["./data", "/etc/hosts"]
    assert asked(request, Capability.FS_WRITE) == ["./out"]
    assert asked(request, Capability.NETWORK) == [True]
    assert asked(request, Capability.TIMEOUT) == [30]
    assert asked(request, Capability.TRUST) == ["core"]
    at = request.of(Capability.FS_READ)[1].at
    assert (at.line, at.column) == (2, 21)


def test_the_section_holds_every_key(read: Read) -> None:
    """Below `metadata.skillrun` all keys are ours."""
    request = read(
        "metadata:\n  skillrun:\n    fs_read: [a]\n    network: ['Api.example.com']\n    env: [TZ]\n"
        "    limits: {memory: 512MiB, processes: 4}\n    cwd: skill\n    approval: true\n    scripts: {run.py: {description: x}}\n"
    )
    assert request.problems == ()
    assert asked(request, Capability.NETWORK) == ["api.example.com:443"]
    assert asked(request, Capability.ENV) == ["TZ"]
    assert asked(request, Capability.LIMITS) == [f"memory={512 * 2**20}", "processes=4"]
    assert request.cwd is Cwd.SKILL
    assert request.approval is True
    assert request.scripts is not None
    assert request.scripts.get("run.py") is not None


def test_the_string_form_says_the_same(read: Read) -> None:
    """The specification's map of strings: a scalar, or words between blanks."""
    request = read(
        'metadata: {skillrun.fs_read: "./data /etc/hosts", skillrun.network: "true", skillrun.timeout: "30",\n'
        '  skillrun.cwd: "skill", skillrun.approval: "true", skillrun.env: "TZ LANG", skillrun.limits.memory: "1GiB",\n'
        '  skillrun.limits.processes: "9", skillrun.trust: "external", other: "x"}\n'
    )
    assert request.problems == ()
    assert asked(request, Capability.FS_READ) == ["./data", "/etc/hosts"]
    assert asked(request, Capability.NETWORK) == [True]
    assert asked(request, Capability.TIMEOUT) == [30]
    assert asked(request, Capability.ENV) == ["TZ", "LANG"]
    assert asked(request, Capability.LIMITS) == [f"memory={2**30}", "processes=9"]
    assert request.cwd is Cwd.SKILL
    assert request.approval is True


@pytest.mark.parametrize(
    ("text", "capability", "values"),
    [
        ('skillrun.network: "false"', Capability.NETWORK, []),
        ('skillrun.network: "a.com b.com:80"', Capability.NETWORK, ["a.com:443", "b.com:80"]),
        ('skillrun.fs_read: ""', Capability.FS_READ, []),
        ('skillrun.fs_read: "null"', Capability.FS_READ, []),
        ("skillrun.timeout: 5", Capability.TIMEOUT, [5]),
        ('skillrun.fs_read: "true"', Capability.FS_READ, ["true"]),
    ],
)
def test_string_form_values(read: Read, text: str, capability: Capability, values: list) -> None:
    """Each string is read as what it stands for; a word is a path where paths are wanted."""
    request = read(f"metadata: {{{text}}}")
    assert rules(request) == []
    assert asked(request, capability) == values


@pytest.mark.parametrize(
    "line",
    [
        *(
            "network: off",
            'network: "false"',
            "network: no",
            "network: yes",
            "network: 1",
            "network: {hosts: [a.com]}",
            "network: a.com",
        ),
        *("trust: yes", "trust: true", "trust: Core", "trust: [core]", "trust: 1"),
        *(
            "timeout: 3600s",
            "timeout: true",
            "timeout: '30'",
            "timeout: [30]",
            "timeout: 0",
            "timeout: -1",
            "timeout: .inf",
        ),
        *("timeout: .nan", "timeout: 1:30", "timeout: 1" + "0" * 390),
        *(
            "fs_read: {path: ./data}",
            "fs_read: [./a, 5, null]",
            "fs_read: 5",
            "fs_read: true",
            'fs_read: "./a, ./b"',
        ),
        *("fs_write: [[a]]", "fs_write: [true]"),
    ],
)
def test_a_wrong_type_is_an_error_with_a_place(read: Read, line: str) -> None:
    """Nothing is converted, in particular no word to a boolean (A-07) and no text to its characters (A-08)."""
    request = read(f"name: d\n{line}\n")
    assert set(rules(request)) == {"request-type"}
    problem = request.problems[0]
    assert problem.at is not None
    assert problem.at.line == 2
    assert line.partition(":")[0] in problem.message
    assert problem.help
    assert not request.valid
    assert request.asked == ()


def test_a_lone_text_is_one_path(read: Read) -> None:
    """`fs_read: ./data` is that path and never its characters, which hold `/` and `.` (A-08)."""
    assert asked(read("fs_read: ./data\n"), Capability.FS_READ) == ["./data"]


@pytest.mark.parametrize(
    "path",
    [
        *(
            "~root/x",
            "~",
            "$HOME/n",
            "${HOME}/n",
            "$UNSET/x",
            "x/${workspace}",
            "${workspace}x",
            "${workspace",
            "$",
        ),
        *("./out/**", "./d*/x", "a?b", "[ab]", "{a,b}", "", "a\\0b", "a\\x07b", "a\\x9bb", "a\\nb"),
    ],
)
def test_paths_that_mean_two_things_are_errors(read: Read, path: str) -> None:
    """Users, unknown variables, patterns, NUL and control characters are errors, never empty and never names (C-09, C-11)."""
    # NUL and friends cannot stand in the file itself; a quoted escape brings them in.
    request = read(f'fs_read: ["{path}"]\n')
    assert rules(request) == ["request-path"]
    assert request.asked == ()


@pytest.mark.parametrize(
    "path",
    [
        "${workspace}/a",
        "${skill}",
        "${scratch}/x y",
        "~/notes",
        "/opt/",
        "~/.ssh//",
        "a b",
        "näme",
        "a-$"[:2],
    ],
)
def test_plain_paths_are_no_errors(read: Read, path: str) -> None:
    """The three variables at the start, `~/`, blanks and letters of any script are fine."""
    assert read(f'fs_read: ["{path}"]\n').problems == ()


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        *(
            ("fs-read", "fs_read"),
            ("FS_READ", "fs_read"),
            ("fsread", "fs_read"),
            ("fs_reads", "fs_read"),
            ("fs_raed", "fs_read"),
        ),
        *(
            ("fs-write", "fs_write"),
            ("Network", "network"),
            ("networks", "network"),
            ("netwrok", "network"),
            ("timeouts", "timeout"),
        ),
        *(
            ("time_out", "timeout"),
            ("timeot", "timeout"),
            ("TRUST", "trust"),
            ("trusts", "trust"),
            ("truts", "trust"),
        ),
    ],
)
def test_a_near_key_is_an_error_with_a_suggestion(read: Read, key: str, meant: str) -> None:
    """A key that is almost one of the five grants nothing in silence (A-17)."""
    request = read(f"{key}: true\n")
    assert rules(request) == ["request-near-key"]
    assert request.problems[0].help == f"did you mean `{meant}`?"


@pytest.mark.parametrize(
    "key",
    [
        "name",
        "description",
        "version",
        "license",
        "metadata",
        "tools",
        "model",
        "worktimes",
        "reads",
        "thrust-axis",
    ],
)
def test_other_peoples_keys_are_theirs(read: Read, key: str) -> None:
    """Keys that are not near ours are nobody's error."""
    assert read(f"{key}: x\n").problems == ()


def test_other_words_at_top_level_are_noted_and_ignored(read: Read) -> None:
    """`env`, `scripts` and the like at top level belong to others: a note, nothing asked for, whatever their type."""
    request = read("env: 5\nscripts: [a]\nlimits: {x: 1}\ncwd: 3\napproval: maybe\n")
    assert request.valid
    assert rules(request, Severity.NOTE) == ["request-not-ours"] * 5
    assert request.asked == ()


def test_misplaced_keys_are_reported(read: Read) -> None:
    """Ours one level too high or too low: told where to write it, and nothing is granted for it (A-17)."""
    assert rules(read("skillrun: {fs_read: [a]}\n")) == ["request-misplaced"]
    assert rules(read("skillrun.network: 'true'\n")) == ["request-misplaced"]
    inner = read("capabilities: {fs-write: [./out], timeouts: 5}\nmetadata: {fs_read: [a]}\n")
    assert rules(inner, Severity.WARNING) == ["request-misplaced"] * 2
    assert inner.asked == ()
    assert rules(read("metadata: {skilrun: {fs_read: [a]}}\n")) == ["request-near-key"]


@pytest.mark.parametrize(
    ("key", "rule"),
    [("fs_reed", "request-near-key"), ("limit", "request-near-key"), ("colour", "request-unknown-key")],
)
def test_every_key_of_the_section_is_ours(read: Read, key: str, rule: str) -> None:
    """Below `metadata.skillrun` an unknown key is an error, near or not, in both forms."""
    assert rules(read(f"metadata: {{skillrun: {{{key}: 1}}}}\n")) == [rule]
    assert rules(read(f"metadata: {{skillrun.{key}: '1'}}\n")) == [rule]


@pytest.mark.parametrize(
    "text",
    [
        "network: true\nmetadata: {skillrun: {network: false}}\n",
        "network: true\nmetadata: {skillrun.network: 'false'}\n",
        "metadata: {skillrun: {env: [A]}, skillrun.env: B}\n",
        "metadata: {skillrun: {limits: {memory: 1GiB}}, skillrun.limits.memory: 2GiB}\n",
    ],
)
def test_one_key_in_two_places_is_an_error(read: Read, text: str) -> None:
    """Two voices would need a rule about who wins; there is none."""
    assert rules(read(text)) == ["request-two-places"]


@pytest.mark.parametrize(
    "text",
    [
        "limits: {memory: lots}",
        "limits: {memory: 0}",
        "limits: {memory: -1}",
        "limits: {processes: 1GiB}",
        "limits: {memory: 1.5}",
        "limits: 5",
        "limits: {memory: true}",
        "limits: {memory: 99999999TiB}",
        "env: TZ",
        "env: ['A B']",
        "env: [5]",
        "env: ['A=b']",
        "cwd: home",
        "cwd: true",
        "approval: yes",
        "approval: 1",
        "scripts: [a]",
        "scripts: {a: 5}",
    ],
)
def test_wrong_types_in_the_section(read: Read, text: str) -> None:
    """The other keys are as strict."""
    assert rules(read(f"metadata:\n  skillrun:\n    {text}\n")) == ["request-type"]


def test_a_section_that_is_no_map_is_an_error(read: Read) -> None:
    """`metadata.skillrun: true` asks for nothing that could be named."""
    assert rules(read("metadata: {skillrun: true}\n")) == ["request-type"]
    assert read("metadata: {skillrun: null}\n").problems == ()
    assert read("metadata: words\n").problems == ()


@pytest.mark.parametrize(
    ("text", "presence"),
    [
        ("", Presence.ABSENT),
        ("KEY: null\n", Presence.NULL),
        ("KEY: []\n", Presence.EMPTY),
        ("KEY: ['x']\n", Presence.VALUE),
    ],
)
@pytest.mark.parametrize("key", ["fs_read", "fs_write", "network"])
def test_three_kinds_of_nothing_stay_apart(read: Read, key: str, text: str, presence: Presence) -> None:
    """Absent, null and empty all ask for nothing, and can still be told apart."""
    request = read("name: d\n" + text.replace("KEY", key))
    assert request.presence(key) is presence
    assert request.valid
    assert (request.asked == ()) == (presence is not Presence.VALUE)


@pytest.mark.parametrize("key", ["timeout", "trust", "env", "limits", "cwd", "approval", "scripts"])
def test_null_is_like_absent_for_every_other_key(read: Read, key: str) -> None:
    """Null asks for nothing and leaves the choice to the ceiling; it is no error in a request."""
    request = read(f"metadata: {{skillrun: {{{key}: null}}}}\n")
    assert request.valid
    assert request.asked == ()
    assert request.presence(key) is Presence.NULL
    assert (request.cwd, request.approval, request.scripts) == (Cwd.WORKSPACE, False, None)


@pytest.mark.parametrize("key", TOP)
def test_every_top_key_counts_in_both_places(read: Read, key: str) -> None:
    """No key is read in one place and dropped in the other."""
    value = {"timeout": "5", "trust": "core", "network": "true"}.get(key, "[a]")
    top = read(f"{key}: {value}\n")
    below = read(f"metadata: {{skillrun: {{{key}: {value}}}}}\n")
    assert (
        [(a.capability, a.value) for a in top.asked] == [(a.capability, a.value) for a in below.asked] != []
    )
