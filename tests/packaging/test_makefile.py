"""`make` and `.ci/run` work on machines that lack this or that, and say what is missing when they can't."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent.parent


def program(path: Path, text: str) -> Path:
    """Write a shell script that stands in for a program of the machine."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def make_environment(tmp_path: Path, python: str) -> subprocess.CompletedProcess[str]:
    """Let the Makefile make a virtual environment with a Python that logs its arguments and does as told."""
    stub = program(tmp_path / "python", f'echo "$*" >>{tmp_path}/log\n{python}')
    venv = tmp_path / "venv"
    command = ["make", "-C", str(ROOT), f"VENV={venv}", f"PYTHON={stub}", f"{venv}/bin/python"]
    # What an outer `make test` puts into the environment would change what this one does.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_venv_is_enough_where_it_works(tmp_path: Path) -> None:
    """With a whole Python nothing but `-m venv` is asked for."""
    done = make_environment(tmp_path, 'case "$*" in "-m venv"*) mkdir -p "$3/bin"; : >"$3/bin/python";; esac')
    assert done.returncode == 0, done.stderr
    assert [line.split(" /")[0] for line in (tmp_path / "log").read_text().splitlines()[1:]] == ["-m venv"]


def test_pip_stands_in_for_ensurepip(tmp_path: Path) -> None:
    """Debian's python3 without python3-venv: an environment without pip, filled by the pip outside."""
    python = 'case "$*" in *--without-pip*) exit 0;; "-m venv"*|*virtualenv*) exit 1;; esac'
    done = make_environment(tmp_path, python)
    assert done.returncode == 0, done.stderr
    log = (tmp_path / "log").read_text().splitlines()
    assert log[-1] == f"-m pip --python {tmp_path}/venv/bin/python install --quiet pip"


def test_virtualenv_is_the_last_way(tmp_path: Path) -> None:
    """Without ensurepip and pip, virtualenv makes the environment."""
    done = make_environment(tmp_path, 'case "$*" in "-m venv"*|"-m pip"*) exit 1;; esac')
    assert done.returncode == 0, done.stderr
    assert "-m virtualenv" in (tmp_path / "log").read_text().splitlines()[-1]


def test_the_missing_package_is_named(tmp_path: Path) -> None:
    """When no way works, the message names the package, and no half environment stays for the next try."""
    done = make_environment(
        tmp_path, 'case "$*" in "-m venv"*) mkdir -p "$3/bin"; exit 1;; -m*) exit 1;; esac'
    )
    assert done.returncode != 0
    assert "apt-get install python3-venv" in done.stderr
    assert not (tmp_path / "venv").exists()


def test_an_old_python_is_refused(tmp_path: Path) -> None:
    """A Python below 3.10 is refused by version, before anything is made."""
    done = make_environment(tmp_path, "exit 1")
    assert done.returncode != 0
    assert "needs Python 3.10 or newer" in done.stderr
    assert not (tmp_path / "venv").exists()


@pytest.mark.parametrize("status", [0, 1, 5])
def test_ci_ends_as_the_tests_end(tmp_path: Path, status: int) -> None:
    """`.ci/run` requires the linux backend, calls `make test`, and passes its status on, "no tests" included."""
    program(tmp_path / "bin" / "make", f'echo "$1 $SKILLRUN_REQUIRE_BACKENDS"; exit {status}')
    for name in ("git", "node", "python3"):
        program(tmp_path / "bin" / name, "exit 0")
    environment = {**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    environment.pop("SKILLRUN_REQUIRE_BACKENDS", None)
    command = ["bash", str(ROOT / ".ci" / "run")]
    done = subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (status, "test linux,linux-2\n")


def test_ci_installs_what_is_missing_only_when_it_is(tmp_path: Path) -> None:
    """On a bare machine root installs exactly the missing packages; a machine that has them installs none."""
    shell = {name: f"/bin/{name}" for name in ("bash", "dirname", "sh")}
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, target in shell.items():
        (folder / name).symlink_to(target)
    program(folder / "id", "echo 0")
    program(folder / "apt-get", f'echo "$*" >>{tmp_path}/apt')
    program(folder / "git", "exit 0")
    program(folder / "make", "exit 0")
    command = ["/bin/bash", str(ROOT / ".ci" / "run")]
    subprocess.run(command, env={"PATH": str(folder)}, check=True)
    update, install = (tmp_path / "apt").read_text().splitlines()
    assert update.startswith("update")
    assert install.split("--no-install-recommends ")[1] == "python3 python3-venv nodejs"

    (tmp_path / "apt").unlink()
    program(folder / "python3", "exit 0")
    program(folder / "node", "exit 0")
    subprocess.run(command, env={"PATH": str(folder)}, check=True)
    assert not (tmp_path / "apt").exists()


def test_the_workflow_gives_jobs_no_more_than_reading() -> None:
    """Every job reads the repository at most, keeps no credentials, has a time limit, and is asked for by the gate."""
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    assert workflow["permissions"] == {}
    jobs = workflow["jobs"]
    for job in jobs.values():
        assert job.get("permissions", {}) in ({}, {"contents": "read"})
        assert job["timeout-minutes"] <= 20
        checkouts = [step for step in job["steps"] if step.get("uses", "").startswith("actions/checkout")]
        assert all(step["with"] == {"persist-credentials": False} for step in checkouts)
    assert set(jobs["passed"]["needs"]) == set(jobs) - {"passed"}
    gate = jobs["passed"]["steps"][0]["run"]
    assert gate.count("success") == len(jobs["passed"]["needs"])
