"""Absent, null and empty, for every key at every layer: one test a cell of the table in the docs (law 4; C-18, E-06)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from skillrun.errors import ConfigError
from skillrun.permissions.grant import Requirement

if TYPE_CHECKING:
    from permission_scene import Scene

# What a skill asks for that asks for everything, so that the ceiling alone decides.
GREEDY = """fs_read: ["${workspace}"]
fs_write: ["${workspace}/out"]
network: true
timeout: 100
metadata: {skillrun: {env: [COLUMNS], limits: {memory: 1TiB, processes: 99999, file_size: 1TiB, output: 1GiB}}}
"""
KEYS = ("fs_read", "fs_write", "network", "timeout", "env", "limits", "deny", "require", "enabled")
LISTS = frozenset({"fs_read", "fs_write", "network", "env", "deny"})
BASE = """sandbox:
  fs_read: ["${workspace}"]
  fs_write: ["${workspace}/out"]
  network: true
  timeout: 90
  env: [COLUMNS]
  limits: {memory: 3GiB, processes: 9, file_size: 5GiB, output: 7MiB}
  require: full
"""
DEFAULT_LIMITS = (2 * 2**30, 256, 2**30, 2**20)


def outcome(scene: Scene, key: str) -> object:
    """Return what a greedy skill is given of one key."""
    grant = scene.grant(GREEDY)
    rights = grant.capabilities
    return {
        "fs_read": scene.reads(grant),
        "fs_write": scene.writes(grant),
        "network": rights.network.everything or bool(rights.network),
        "timeout": rights.timeout,
        "env": set(rights.env),
        "limits": (
            rights.limits.memory,
            rights.limits.processes,
            rights.limits.file_size,
            rights.limits.output,
        ),
        "deny": [d for d in grant.denied if d.reason.startswith("`deny`")],
        "require": grant.require,
        "enabled": grant.unconfined is None,
    }[key]


OF_DEFAULT = {
    "fs_read": {"."},
    "fs_write": set(),
    "network": False,
    "timeout": 60,
    "env": set(),
    "limits": DEFAULT_LIMITS,
    "deny": [],
    "require": Requirement.CONFINED,
    "enabled": True,
}
OF_BASE = {
    "fs_read": {"."},
    "fs_write": {"out"},
    "network": True,
    "timeout": 90,
    "env": {"COLUMNS"},
    "limits": (3 * 2**30, 9, 5 * 2**30, 7 * 2**20),
    "deny": [],
    "require": Requirement.FULL,
    "enabled": True,
}
EMPTY = {"fs_read": set(), "fs_write": set(), "network": False, "env": set(), "deny": []}


def put(scene: Scene, layer: str, line: str) -> None:
    """Write one line into the `sandbox` of a layer; all other layers allow everything that is asked for."""
    body = f"sandbox:\n  timeout: 90\n  {line}\n" if line else "sandbox: {}\n"
    if layer == "operator":
        scene.operator(body.replace("  timeout: 90\n", "") if line else body)
        return
    if layer == "named":
        scene.ceiling = scene.write("named.yaml", body.replace("  timeout: 90\n", "") if line else body)
        return
    section = f"{{ {line} }}" if line else "{}"
    extra = {"floor": f"floor: {section}\n", "entry": f"skills: {{demo: {{ceiling: {section}}}}}\n"}.get(
        layer, ""
    )
    scene.operator(BASE + extra)
    if layer == "project":
        scene.project(f"sandbox: {section}\n")
    if layer == "machine":
        scene.machine = scene.write("machine.yaml", f"sandbox: {section}\n")


BASES = ("operator", "named")
NARROWING = ("project", "machine", "floor", "entry")


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("layer", BASES)
def test_absent_in_a_base_is_the_default(scene: Scene, layer: str, key: str) -> None:
    """A key that a base does not have is the one of preset `default`."""
    put(scene, layer, "")
    assert outcome(scene, key) == OF_DEFAULT[key]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("layer", NARROWING)
def test_absent_in_a_narrowing_layer_is_as_above(scene: Scene, layer: str, key: str) -> None:
    """A key that a narrowing layer does not have changes nothing."""
    put(scene, layer, "")
    assert outcome(scene, key) == OF_BASE[key]


def cut_reads(scene: Scene, layer: str, key: str) -> object:
    """Return what is left where a list is empty: reading still comes with a write root of the base."""
    del scene
    return {"out"} if key == "fs_read" and layer in NARROWING else EMPTY[key]


@pytest.mark.parametrize("written", ["[]", "null"])
@pytest.mark.parametrize("key", sorted(LISTS))
@pytest.mark.parametrize("layer", BASES + NARROWING)
def test_an_empty_or_null_list_is_nothing(scene: Scene, layer: str, key: str, written: str) -> None:
    """`[]` and null of a list allow nothing, and never "no limit"."""
    put(scene, layer, f"{key}: {written}")
    assert outcome(scene, key) == cut_reads(scene, layer, key)


@pytest.mark.parametrize("key", sorted(frozenset(KEYS) - LISTS))
@pytest.mark.parametrize("layer", BASES + NARROWING)
def test_null_elsewhere_is_an_error_with_its_line(scene: Scene, layer: str, key: str) -> None:
    """Null of a number, a word or a map could mean two things, so it is an error."""
    put(scene, layer, f"{key}: null")
    with pytest.raises(ConfigError) as caught:
        scene.layers()
    only_in_sandbox = key == "enabled" and layer in {"floor", "entry"}
    assert caught.value.problem.rule == ("ceiling-unknown-key" if only_in_sandbox else "ceiling-null")
    assert caught.value.problem.at is not None
    assert caught.value.problem.at.line


@pytest.mark.parametrize("layer", BASES)
def test_empty_limits_of_a_base_are_the_defaults(scene: Scene, layer: str) -> None:
    """`limits: {}` sets no bound of its own, so each one is the default's; one alone leaves the others."""
    put(scene, layer, "limits: {}")
    assert outcome(scene, "limits") == DEFAULT_LIMITS
    put(scene, layer, "limits: {processes: 3}")
    assert outcome(scene, "limits") == (DEFAULT_LIMITS[0], 3, *DEFAULT_LIMITS[2:])


@pytest.mark.parametrize("layer", NARROWING)
def test_empty_limits_of_a_narrowing_layer_change_nothing(scene: Scene, layer: str) -> None:
    """`limits: {}` is all absent; one bound narrows that one."""
    put(scene, layer, "limits: {}")
    assert outcome(scene, "limits") == OF_BASE["limits"]
    put(scene, layer, "limits: {processes: 3}")
    assert outcome(scene, "limits") == (3 * 2**30, 3, 5 * 2**30, 7 * 2**20)


@pytest.mark.parametrize(
    ("line", "key", "left"),
    [
        ('fs_read: ["${workspace}/data"]', "fs_read", {"data", "out"}),
        ('fs_write: ["${workspace}/out/deep"]', "fs_write", {"out/deep"}),
        ("network: [a.com]", "network", True),
        ("network: false", "network", False),
        ("timeout: 10", "timeout", 10),
        ("env: [COLUMNS]", "env", {"COLUMNS"}),
    ],
)
@pytest.mark.parametrize("layer", NARROWING)
def test_a_value_in_a_narrowing_layer_narrows(
    scene: Scene, layer: str, line: str, key: str, left: object
) -> None:
    """Each kind of value takes effect in each kind of layer (C-18 c)."""
    put(scene, layer, line)
    assert outcome(scene, key) == left


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "ceiling-empty"),
        ("# nothing\n", "ceiling-empty"),
        ("- a\n- b\n", "ceiling-not-a-mapping"),
        ("word\n", "ceiling-not-a-mapping"),
        ("sandbox: {fs_read: 5}\n", "ceiling-type"),
        ("sandbox: null\n", "ceiling-null"),
        ("sandbox:\n", "ceiling-null"),
        ("sandbox: []\n", "ceiling-type"),
        ("sandboks: {}\n", "ceiling-unknown-key"),
        ("fs_read: [/]\n", "ceiling-unknown-key"),
        ("sandbox: {fs_reed: []}\n", "ceiling-unknown-key"),
        ("sandbox: {timeout: 0}\n", "ceiling-type"),
        ("sandbox: {timeout: 1m}\n", "ceiling-type"),
        ("sandbox: {network: 'true'}\n", "ceiling-type"),
        ("sandbox: {network: ['*']}\n", "ceiling-host"),
        ("sandbox: {enabled: 'false'}\n", "ceiling-type"),
        ("sandbox: {require: some}\n", "ceiling-type"),
        ("sandbox: {deny: ['**/.env']}\n", "ceiling-path"),
        ("sandbox: {deny: ['../x']}\n", "ceiling-path"),
        ("sandbox: {fs_read: ['data']}\n", "ceiling-path"),
        ("sandbox: {fs_read: ['~root']}\n", "ceiling-path"),
        ("sandbox: {limits: {ram: 1}}\n", "ceiling-unknown-key"),
        ("sandbox: {}\nsandbox: {}\n", "ceiling-duplicate-key"),
        ("floor: {enabled: true}\n", "ceiling-unknown-key"),
        ("trusted: [{skill: ~/x}]\n", "ceiling-type"),
        ("trusted: [{skill: ~/x, digest: abc}]\n", "ceiling-type"),
        ("trusted: {}\n", "ceiling-type"),
        ("skills: {demo: {digest: sha256:12}}\n", "ceiling-type"),
        ("skills: {demo: {request: {fs_raed: []}}}\n", "ceiling-near-key"),
        ("skills: {demo: {requests: {}}}\n", "ceiling-unknown-key"),
        ("skills: {demo: null}\n", "ceiling-null"),
        ("tools: {max_tools: 0}\n", "ceiling-type"),
        ("tools: {unattended_approval: 'true'}\n", "ceiling-type"),
        ("interpreters: {python: [a]}\n", "ceiling-type"),
        ("interpreters: {python: bin/python}\n", "ceiling-path"),
        ("workspaces: [work]\n", "ceiling-path"),
        ("sandbox: {fs_read: [*x]}\n", "ceiling-alias"),
    ],
)
def test_a_wrong_file_is_an_error_with_a_place(scene: Scene, text: str, rule: str) -> None:
    """Wrong kinds of file and of value are configuration errors, each with file and line (E-06)."""
    scene.operator(text)
    with pytest.raises(ConfigError) as caught:
        scene.layers()
    assert caught.value.problem.rule == rule
    assert caught.value.problem.at is not None
    assert caught.value.problem.at.path == scene.config


def test_a_binary_file_and_a_huge_one_are_errors(scene: Scene) -> None:
    """Bytes that are no text, and 10 MB of anything, are refused before they are parsed (E-06 e)."""
    scene.operator("x")
    assert scene.config is not None
    scene.config.write_bytes(b"\x7fELF\xff\xfe\x00")
    with pytest.raises(ConfigError) as caught:
        scene.layers()
    assert caught.value.problem.rule == "ceiling-not-utf8"
    scene.config.write_bytes(b"a: b\n" * 2_000_000)
    with pytest.raises(ConfigError) as caught:
        scene.layers()
    assert caught.value.problem.rule == "ceiling-too-large"


def test_everything_wrong_is_told_at_once(scene: Scene) -> None:
    """A person sees all mistakes of a file in one go."""
    scene.operator("sandbox: {fs_read: 5, timeout: x}\nnope: 1\n")
    with pytest.raises(ConfigError) as caught:
        scene.layers()
    assert len(caught.value.problems) == 3


def test_no_ceiling_at_all_is_the_strict_default(scene: Scene) -> None:
    """Nothing said by anybody means preset `default`, and no number is ever without a limit (C-18 d)."""
    grant = scene.grant(GREEDY)
    assert scene.reads(grant) == {"."}
    assert grant.capabilities.timeout == 60
    assert all(math.isfinite(n) for n in (grant.capabilities.limits.memory, grant.capabilities.limits.output))
    assert {str(item.limit_at) for item in grant.granted} == {"preset default"}
