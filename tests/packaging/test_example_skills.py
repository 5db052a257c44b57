"""The example skills do what their SKILL.md says; run plainly here, so that a fault is theirs and not the sandbox's."""

from __future__ import annotations

import ast
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SKILLS = Path(__file__).resolve().parent.parent.parent / "skills"
ESCAPE = SKILLS / "escape-artist" / "scripts" / "escape.py"
BAIT = SKILLS / "escape-artist" / "bait.py"


def run(script: str, *arguments: str, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run one example script by its own first line."""
    command = [str(SKILLS / script), *arguments]
    return subprocess.run(command, cwd=cwd, input=stdin, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("manifest", sorted(SKILLS.glob("*/SKILL.md")), ids=lambda path: path.parent.name)
def test_every_example_is_a_skill_with_one_runnable_script(manifest: Path) -> None:
    """The folder carries the skill's name, and its one script has a first line and the exec bit."""
    assert manifest.read_text().startswith(f"---\nname: {manifest.parent.name}\ndescription: ")
    (script,) = (path for path in (manifest.parent / "scripts").iterdir() if path.is_file())
    assert script.read_bytes().startswith(b"#!")
    assert os.access(script, os.X_OK)


def test_the_deploy_checker_is_the_one_of_the_seed() -> None:
    """The front matter is word for word what the project set out to run."""
    assert (SKILLS / "deploy-checker" / "SKILL.md").read_text().split("\n---\n")[0] == (
        "---\n"
        "name: deploy-checker\n"
        "description: Verifies a deployment's health before promoting it.\n"
        'fs_read: ["./data", "/etc/hosts"]\n'
        'fs_write: ["./out"]\n'
        "network: true\n"
        "timeout: 30\n"
        'trust: external   # or "core" for trusted, always-unconfined skills'
    )


@pytest.mark.parametrize("script", sorted(SKILLS.rglob("*.py")), ids=lambda path: path.name)
def test_python_examples_keep_to_an_old_python(script: Path) -> None:
    """They are read by Python 3.8 and import the standard library alone: any interpreter on a machine will do."""
    tree = ast.parse(script.read_bytes(), feature_version=(3, 8))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in imported} <= sys.stdlib_module_names


def test_deploy_checker_works_without_data(tmp_path: Path) -> None:
    """Nothing configured is healthy, said so, and reported to ./out."""
    done = run("deploy-checker/scripts/check.py", "--env", "staging", cwd=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "staging: healthy")
    assert json.loads((tmp_path / "out" / "deploy-staging.json").read_text())["services"] == {}


def test_deploy_checker_tells_a_sick_service(tmp_path: Path) -> None:
    """A wrong version and too few replicas fail; a port that listens passes; JSON and exit status say so."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        environment = {
            "version": "1",
            "expected_version": "2",
            "replicas": 1,
            "min_replicas": 2,
            "url": f"http://127.0.0.1:{listener.getsockname()[1]}/",
        }
        (tmp_path / "data").mkdir()
        (tmp_path / "data" / "shop.json").write_text(
            json.dumps({"environments": {"production": environment}})
        )
        done = run("deploy-checker/scripts/check.py", "--env", "production", "--format", "json", cwd=tmp_path)
    assert done.returncode == 1
    passed = {one["check"]: one["passed"] for one in json.loads(done.stdout)["services"]["shop"]}
    assert passed == {"version": False, "replicas": False, "reachable": True}


@pytest.mark.parametrize("text", ["{", "[]", '{"environments": 5}'])
def test_deploy_checker_refuses_bad_data(tmp_path: Path, text: str) -> None:
    """A data file that can't be used is named, with its own exit status and no traceback."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "bad.json").write_text(text)
    done = run("deploy-checker/scripts/check.py", "--env", "staging", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("check.py: data/bad.json: ")
    assert "Traceback" not in done.stderr


def test_deploy_checker_answers_when_it_may_not_write(tmp_path: Path) -> None:
    """A report that can't be saved is said on stderr and changes no answer."""
    (tmp_path / "out").write_text("a file where the folder should be")
    done = run("deploy-checker/scripts/check.py", "--env", "staging", cwd=tmp_path)
    assert done.returncode == 0
    assert "report not saved: out/deploy-staging.json" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--sort", "n", "--numeric", "--columns", "n"], "| n |\n| --- |\n| 9 |\n| 10 |\n"),
        (["--sort", "n", "--to", "csv"], "name,n\na|b,10\nc,9\n"),
        (["--where", "n=9", "--to", "json"], '[\n  {\n    "name": "c",\n    "n": "9"\n  }\n]\n'),
        (["--limit", "1"], "| name | n |\n| --- | --- |\n| a\\|b | 10 |\n"),
    ],
)
def test_table_tools_converts(tmp_path: Path, arguments: list[str], expected: str) -> None:
    """Each option has its effect on a small table."""
    (tmp_path / "t.csv").write_text("name,n\na|b,10\nc,9\n")
    done = run("table-tools/scripts/convert.py", "t.csv", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, expected, "")


@pytest.mark.parametrize(
    ("stdin", "arguments", "reason"),
    [
        ("a,b\n1\n", [], "row 2 has 1 cells, the header has 2"),
        ("a\n1\n", ["--columns", "z"], "no column 'z'; there are a"),
        ("a\nx\n", ["--sort", "a", "--numeric"], "'x' is not a number"),
        ("", [], "the table is empty"),
    ],
)
def test_table_tools_refuses(tmp_path: Path, stdin: str, arguments: list[str], reason: str) -> None:
    """What can't be done is refused in one line with its own exit status."""
    done = run("table-tools/scripts/convert.py", *arguments, cwd=tmp_path, stdin=stdin)
    assert (done.returncode, done.stdout) == (2, "")
    assert reason in done.stderr


def test_log_digest_counts(tmp_path: Path) -> None:
    """Levels are counted, messages that differ in numbers only are one, odd file names are files."""
    (tmp_path / "a=b.log").write_text("ERROR took 12 ms\nERROR took 40 ms\n[warn] slow\nplain\n")
    done = run("log-digest/scripts/digest.sh", "-n", "1", "a=b.log", cwd=tmp_path)
    assert done.stdout == (
        "4 lines\n      2  ERROR\n      1  WARNING\n      1  without a level\nmost frequent:\n"
        "      2  ERROR  took # ms\n"
    )
    assert run("log-digest/scripts/digest.sh", "missing.log", cwd=tmp_path).returncode == 1
    assert run("log-digest/scripts/digest.sh", "-n", "x", cwd=tmp_path).returncode == 2


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node on this machine")
@pytest.mark.parametrize(
    ("path", "status", "expected"),
    [
        ("a[0].n", 0, '"x"\n'),
        ("a[*].n", 0, '"x"\n"y"\n'),
        ('["o k"]', 0, "1\n"),
        ("constructor", 1, ""),
        ("a[", 2, ""),
    ],
)
def test_json_query_selects(tmp_path: Path, path: str, status: int, expected: str) -> None:
    """Paths select values; nothing found and a wrong path are told apart."""
    document = json.dumps({"a": [{"n": "x"}, {"n": "y"}], "o k": 1})
    done = run("json-query/scripts/query.js", path, cwd=tmp_path, stdin=document)
    assert (done.returncode, done.stdout) == (status, expected)


def test_hello_greets(tmp_path: Path) -> None:
    """The skill that declares nothing works."""
    assert run("hello/scripts/hello.sh", "Ada", cwd=tmp_path).stdout.startswith("Hello, Ada!\n")


def attack(command: list[str], cwd: Path, expect: str) -> tuple[dict[str, Any], str]:
    """Run a command on the bait; return the attack's own report and the judge's text."""
    full = [sys.executable, str(BAIT), "--expect", expect, "--", *command, "--json"]
    done = subprocess.run(full, cwd=cwd, capture_output=True, text=True, check=False, timeout=60)
    report, _, verdict = done.stdout.partition("judged from outside\n")
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(report), verdict


def test_the_escape_artist_gets_through_without_a_sandbox(tmp_path: Path) -> None:
    """The control: unconfined, most attempts work, so that a blocked one means something."""
    report, verdict = attack([str(ESCAPE)], tmp_path, "open")
    status = {(row["group"], row["attempt"]): row["status"] for row in report["attempts"]}
    assert len(status) == len(report["attempts"]) >= 25
    assert report["open"] >= 20, report
    for group, title in [
        ("read secrets", "the caller's secret file"),
        ("read secrets", "the caller's environment"),
        ("read secrets", "a descriptor left open by the caller"),
        ("write outside", "a file in the top of the workspace"),
        ("write outside", "a file in the shared /tmp"),
        ("write outside", "the mode of a file outside"),
        ("write outside", "a set-id program"),
        ("call home", "TCP to a port of this machine"),
        ("call home", "a service's socket file"),
        ("reach other processes", "send a signal"),
    ]:
        assert status[group, title] == "open", title
    assert "OPEN     somebody connected to the TCP port" in verdict
    assert "OPEN     a process outlived the run" in verdict


def test_the_escape_artist_does_no_harm(tmp_path: Path) -> None:
    """Unconfined, it leaves every file, mode, time and name as it was, on its target and on itself."""
    before = {
        path: (path.stat().st_mode, path.stat().st_mtime_ns) for path in SKILLS.rglob("*") if path.is_file()
    }
    _, verdict = attack([str(ESCAPE)], tmp_path, "open")
    assert "no       the secret file is changed" in verdict
    assert "no       marker files are left" in verdict
    assert "no       the process outside is gone" in verdict
    assert list(tmp_path.iterdir()) == []
    assert before == {path: (path.stat().st_mode, path.stat().st_mtime_ns) for path in before}


def test_the_judge_wants_to_see_the_attack(tmp_path: Path) -> None:
    """A command that fails without attacking counts neither as blocked nor as open."""
    for expect in ("open", "blocked"):
        for command in ("true", "false"):
            full = [sys.executable, str(BAIT), "--expect", expect, "--", command]
            done = subprocess.run(full, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
            assert done.returncode == 2
            assert "did not run the attack" in done.stderr


def test_the_judge_sees_what_the_report_hides(tmp_path: Path) -> None:
    """A report that claims that all was blocked is overruled by a connection that arrived."""
    liar = tmp_path / "liar.py"
    liar.write_text(
        "import socket, sys\n"
        "port = int(sys.argv[sys.argv.index('--port') + 1])\n"
        "socket.create_connection(('127.0.0.1', port)).close()\n"
        "print('31 blocked, 0 OPEN, 0 unknown')\n"
    )
    full = [sys.executable, str(BAIT), "--expect", "blocked", "--", sys.executable, str(liar)]
    done = subprocess.run(full, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "OPEN     somebody connected to the TCP port" in done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="only the linux backend confines here")
def test_the_escape_artist_gets_nowhere_confined(tmp_path: Path) -> None:
    """The same attempts through `skillrun run`: not one is open, and from outside nothing was reached or left."""
    skillrun = [sys.executable, "-c", "import sys; from skillrun.cli import main; sys.exit(main())"]
    where = ["--ceiling", str(SKILLS / "ceiling.yaml"), "--workspace", str(tmp_path)]
    probe = subprocess.run(
        [*skillrun, "run", *where, str(SKILLS / "hello")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    if probe.returncode == 125 and "linux" not in os.environ.get("SKILLRUN_REQUIRE_BACKENDS", ""):
        pytest.skip(f"nothing was started: {probe.stderr.strip()}")
    report, verdict = attack([*skillrun, "run", *where, str(ESCAPE.parent.parent), "--"], tmp_path, "blocked")
    assert [row for row in report["attempts"] if row["status"] == "open"] == []
    # The one left behind is for the judge; every other attempt had a target and was stopped.
    unknown = {row["attempt"] for row in report["attempts"] if row["status"] == "unknown"}
    assert unknown <= {"a daemon in a session of its own"}
    assert "OPEN" not in verdict
