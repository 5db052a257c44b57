"""`doctor` really tries what it reports; `init` makes things that work and overwrites nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from skillrun.cli import probes
from skillrun.cli.doctor import examine
from skillrun.cli.interrupts import Interrupts
from skillrun.host import current_host

if TYPE_CHECKING:
    from desk import Desk

TRIED = {
    "start",
    "scratch",
    "read",
    "list",
    "write",
    "own-skill",
    "network",
    "signal",
    "environment",
    "outlive",
}


def test_doctor_says_that_scripts_are_confined(confining: Desk) -> None:
    """On a machine that can: 0, every probe is ok, and the guarantees are those of a run."""
    done = confining("doctor", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["schema"], found["backend"]) == (0, "skillrun.doctor/1", "linux")
    assert found.keys() == {
        "schema",
        "platform",
        "backend",
        "level",
        "guarantees",
        "probes",
        "remedies",
        "limits",
    }
    assert {probe["name"] for probe in found["probes"]} == TRIED
    assert [probe for probe in found["probes"] if not probe["ok"]] == []
    assert found["guarantees"]["fs-read"] == "enforced"
    told = confining("doctor")
    assert (told.returncode, told.stderr) == (0, "")
    assert "scripts are confined here" in told.stdout


def test_doctor_leaves_nothing(confining: Desk) -> None:
    """The throwaway skill, the workspace and the scratch folders are gone afterwards."""
    temporary = confining.home / "temporary"
    temporary.mkdir()
    assert confining("doctor", TMPDIR=str(temporary)).returncode == 0
    assert list(temporary.iterdir()) == []


def test_doctor_without_a_backend_is_1(desk: Desk) -> None:
    """Where nothing confines: 1, no guarantee is claimed, and there is advice."""
    done = desk("doctor", "--backend", "passthrough", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["backend"], found["guarantees"]) == (1, None, None)
    assert found["probes"][0]["ok"] is False
    assert found["remedies"]
    told = desk("doctor", "--backend", "passthrough")
    assert "skillrun refuses to run them" in told.stdout


def test_every_probe_fails_where_nothing_is_confined(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: the same probes without confinement report what worked, so that `ok` means something."""
    real = probes.Runner

    def unconfined(**settings: object) -> object:
        return real(**{**settings, "backend": "passthrough", "allow_unconfined": True})  # type: ignore[arg-type]

    monkeypatch.setattr(probes, "Runner", unconfined)
    tried = probes.try_everything(current_host(), None, Interrupts())
    failed = {trial.name: trial.detail for trial in tried.trials if not trial.ok}
    # What passthrough promises holds without confinement too: a scratch folder, the environment, the tree's end.
    assert failed.keys() == TRIED - {"start", "scratch", "environment", "outlive"}
    assert all(detail.startswith("it WORKED") for detail in failed.values()), failed
    assert not examine(tried).confined


def test_the_environment_and_outlive_probes_can_fail(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The control for the other two: a variable that is passed on, and a process that is found by its marker."""
    monkeypatch.setitem(probes._SCRIPTS, "environment.sh", "#!/bin/sh\nexit 10\n")
    monkeypatch.setitem(probes._SCRIPTS, "outlive.sh", "#!/bin/sh\necho left\n")
    monkeypatch.setattr(probes.psutil, "process_iter", lambda _: [_Ghost(probes)])
    host = replace(current_host(), temporary=tmp_path)
    trials = {trial.name: trial for trial in probes.try_everything(host, None, Interrupts()).trials}
    if not trials["start"].ok:
        pytest.skip("no backend can confine a script on this machine")
    assert not trials["environment"].ok
    assert not trials["outlive"].ok


class _Ghost:
    """A process that has every marker."""

    def __init__(self, _: object) -> None:
        self.info = {"cmdline": _Everything()}


class _Everything:
    def __contains__(self, _: object) -> bool:
        return True


def test_a_new_skill_works_at_once(confining: Desk) -> None:
    """`init NAME`, then the command that it prints: no problem, no cut, and the script's answer."""
    made = confining("init", "word-count")
    assert (made.returncode, made.stderr) == (0, "")
    command = made.stdout.splitlines()[-1].removeprefix("try it: skillrun ").split()
    done = confining(*command)
    assert (done.returncode, done.stdout) == (0, "skills/word-count/SKILL.md: 13\n"), done.stderr
    assert "refused" not in done.stderr
    assert "narrowed" not in done.stderr
    listed = confining("list")
    assert (listed.returncode, listed.stderr) == (0, "")


@pytest.mark.parametrize("name", ["tools/word-count", "./word-count", "ABSOLUTE/word-count"])
def test_a_path_says_where_the_skill_goes(confining: Desk, name: str) -> None:
    """With a slash it is the folder itself, and the command that is printed works there too."""
    made = confining("init", name.replace("ABSOLUTE", str(confining.home / "else")))
    assert made.returncode == 0
    command = made.stdout.splitlines()[-1].removeprefix("try it: skillrun ").split()
    assert confining(*command).returncode == 0


def test_a_new_ceiling_file_holds_in_every_role(desk: Desk) -> None:
    """The file that `--ceiling` writes is right as a project file, for `--ceiling FILE`, and as the operator's own."""
    assert desk("init", "demo", "--ceiling").stdout.splitlines()[:3] == [
        "made skills/demo/SKILL.md", "made skills/demo/scripts/count.sh", "made skillrun.yaml",
    ]  # fmt: skip
    assert desk("show", "demo").returncode == 0
    assert "skillrun.yaml:" in desk("show", "demo").stdout
    assert desk("show", "demo", "--ceiling", "skillrun.yaml").returncode == 0
    config = desk.home / ".config" / "skillrun"
    config.mkdir(parents=True)
    (desk.here / "skillrun.yaml").rename(config / "skillrun.yaml")
    done = desk("show", "demo")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("what", ["file", "folder", "link", "dead link"])
def test_nothing_is_overwritten(desk: Desk, what: str) -> None:
    """Whatever has that name stays as it is, and nothing is made by halves."""
    for place in (desk.here / "skills" / "demo", desk.here / "skillrun.yaml"):
        place.parent.mkdir(exist_ok=True)
        match what:
            case "file":
                place.write_text("mine\n")
            case "folder":
                place.mkdir()
            case "link":
                place.symlink_to(desk.home)
            case _:
                place.symlink_to("nowhere")
    before = sorted(desk.home.rglob("*"))
    for words in (["init", "demo"], ["init", "--ceiling"], ["init", "other", "--ceiling"]):
        done = desk(*words)
        assert (done.returncode, done.stdout) == (2, "")
        assert "error[init-exists]" in done.stderr
    assert sorted(desk.home.rglob("*")) == before


@pytest.mark.parametrize("name", ["Word_Count", "a--b", "ab\u0435", "x" * 65, "..", "a b"])
def test_a_name_that_can_not_be_a_key_is_refused(desk: Desk, name: str) -> None:
    """What `run` could not find by name is not made."""
    done = desk("init", name)
    assert (done.returncode, done.stdout) == (2, "")
    assert "error[name-rule]" in done.stderr
    assert list(desk.here.iterdir()) == []


def test_a_folder_that_can_not_be_made_is_an_error(desk: Desk) -> None:
    """A file in the way of the parent: said, and no traceback."""
    (desk.here / "skills").write_text("")
    done = desk("init", "demo")
    assert done.returncode == 2
    assert "error[init-failed]" in done.stderr
    assert Path(desk.here / "skills").read_text() == ""
