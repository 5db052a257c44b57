"""`profile`, `audit`, `diff` and `explain --profile`: on any platform, with exact output."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from desk import SKILLS

from skillrun.cli.explain import command as explain
from skillrun.cli.program import group

if TYPE_CHECKING:
    from collections.abc import Callable

    from desk import Desk

    Snapshot = Callable[[str, str], None]

sys.path.append(str(Path(__file__).resolve().parents[1] / "seatbelt"))
from test_audit_rules import CASES
from vectors import undisputed

GIVEN = {
    "vnode_type": "vnode-type",
    "file_mode": "file-mode",
    "extensions": "extension",
    "protocol": "socket-protocol",
}
PROFILE = """(version 1)
(deny default)
(allow process-exec* (subpath "/bin"))
(allow file-read* (literal "/") (subpath "/usr/lib"))
(allow file-read-data (subpath (param "WORK")))
(deny file-read* (subpath "/work/secret"))
(define (writable folder)
  (allow file-write* (subpath folder)))
(writable "/tmp/out")
(allow network-outbound)
(import "system.sb")
"""


@dataclass(frozen=True)
class Done:
    """What a command said."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def quick(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """Give the same commands without a process for each; what starts no script needs none."""
    monkeypatch.chdir(desk.here)
    for name, value in desk.environment().items():
        monkeypatch.setenv(name, value)

    def call(*arguments: str) -> Done:
        done = CliRunner().invoke(group, list(arguments), standalone_mode=False)
        assert done.exception is None, done.exception
        return Done(done.return_value, done.stdout, done.stderr)

    return call


def words(row: dict[str, Any]) -> list[str]:
    """Write the options of a vector."""
    options = [f"-D{name}={value}" for name, value in row["params"].items()]
    for name, value in row["context"].items():
        values = value if isinstance(value, list) else [f"{value:o}" if name == "file_mode" else value]
        options += [f"--given={GIVEN.get(name, name)}={one}" for one in values]
    return options


@pytest.mark.parametrize("row", undisputed())
def test_vector_through_the_command_line(row: dict[str, Any], tmp_path: Path) -> None:
    """Every vector that nobody disputes, answered by `explain --profile` with the right exit code."""
    profile = tmp_path / "p.sb"
    profile.write_text(row["profile"], encoding="utf-8")
    arguments = [
        "--profile",
        str(profile),
        *words(row),
        "--operation",
        row["operation"],
        "--json",
        "--",
        row["target"] or " ",
    ]
    done = CliRunner().invoke(explain, arguments, standalone_mode=False)
    assert done.exception is None, done.exception
    answer = json.loads(done.stdout)["answers"][0]

    assert answer["model"] == {"allow": "allowed", "deny": "denied"}[row["expect"]]
    certain = row["determinate"] and row["diagnostic"] != "unknown-operation-queried"
    assert answer["decision"] == (answer["model"] if certain else "unknown")
    assert done.return_value == {"allowed": 0, "denied": 1, "unknown": 4}[answer["decision"]]
    if not row["loads"]:
        assert answer["rule"] == "does-not-load"
        assert f"[{row['diagnostic']}]" in done.stderr


@pytest.mark.parametrize("command", ["profile", "audit", "diff"])
def test_help(desk: Desk, snapshot: Snapshot, command: str) -> None:
    """The help of each command."""
    done = desk(command, "--help", COLUMNS="80")
    assert (done.returncode, done.stderr) == (0, "")
    snapshot(f"help-{command}.txt", done.stdout)


def test_explain_a_profile(desk: Desk, quick: Callable[..., Done], snapshot: Snapshot) -> None:
    """Allowed, denied and unknown, each with the rule, its line, and what only looks like the rule."""
    (desk.here / "p.sb").write_text(PROFILE)
    asked = ("explain", "--profile", "p.sb", "-D", "WORK=/work", "--operation")
    text = ""
    for operation, target, code in (
        ("file-read-data", "/usr/lib/libz.dylib", 4),
        ("file-read-data", "/work/secret/key", 4),
        ("file-write-create", "/tmp/out/x", 4),
        ("process-fork", "x", 4),
    ):
        done = quick(*asked, operation, target)
        assert (done.returncode, done.stderr) == (code, "")
        text += done.stdout
    (desk.here / "p.sb").write_text(PROFILE.replace('(import "system.sb")\n', ""))
    for operation, target, code in (
        ("file-read-data", "/usr/lib/libz.dylib", 0),
        ("file-read-data", "/work/secret/key", 0),
        ("file-read-xattr", "/work/secret/key", 1),
        ("network-outbound", "unix:/private/var/run/docker.sock", 0),
        ("file-hover", "/x", 4),
    ):
        done = quick(*asked, operation, target)
        assert (done.returncode, done.stderr) == (code, ""), done.stdout
        text += done.stdout
    snapshot("explain-profile.txt", text)


def test_a_profile_that_does_not_load_denies(
    desk: Desk, quick: Callable[..., Done], snapshot: Snapshot
) -> None:
    """A fault is told with its line, and the answer is that nothing would start."""
    asking = ("explain", "--profile", "p.sb", "-D", "WORK=/w", "--operation", "file-read-data", "/usr/lib/x")
    imports = PROFILE.replace("(deny default)", "(deny defualt)")
    (desk.here / "p.sb").write_text(imports.replace('(import "system.sb")\n', ""))
    done = quick(*asking)
    assert done.returncode == 1
    snapshot("explain-profile-broken.txt", done.stderr + done.stdout)

    (desk.here / "p.sb").write_text(imports)
    done = quick(*asking)
    assert done.returncode == 4, "what an import defines is not known"
    assert "it imports a profile that is not" in done.stdout


@pytest.mark.parametrize("form", ["plain", "concise", "json"])
def test_audit(desk: Desk, quick: Callable[..., Done], snapshot: Snapshot, form: str) -> None:
    """The same findings in each format."""
    (desk.here / "p.sb").write_text(PROFILE)
    done = quick("audit", "p.sb", "--format", form)
    assert done.returncode == 1
    snapshot(f"audit-{form}.txt", done.stderr + done.stdout)


@pytest.mark.parametrize("rule", sorted(CASES))
def test_each_rule_is_told(snapshot: Snapshot, rule: str) -> None:
    """The exact words of each rule's finding, on the profile it is shown with."""
    from skillrun.check.profile.audit import assumed, audit
    from skillrun.check.profile.finding import Limits
    from skillrun.report.diagnostics import plain

    text = CASES[rule][0]
    limits = Limits(("/work",), ("/work/out",), network=False) if rule == "beyond-ceiling" else None
    profile, _ = assumed(text, {}, path=Path("/profiles/p.sb"))
    told = [
        f"{plain(one.problem)}\n  confidence: {one.confidence.value}\n"
        for one in audit(profile, limits=limits)
        if one.problem.rule == rule
    ]
    shown = text if len(text) < 2000 else f"{text[:200]}…"
    snapshot(f"audit-rules/{rule}.txt", f"{shown}\n\n" + "\n".join(told))


def test_audit_exit_codes(desk: Desk, quick: Callable[..., Done]) -> None:
    """0 clean, 1 findings, 2 one of several is missing, 3 nothing was audited."""
    clean = "(version 1)\n(deny default)\n(deny process-info* file-map-executable nvram* iokit-get-properties file-link)\n"
    (desk.here / "clean.sb").write_text(clean)
    (desk.here / "open.sb").write_text("(version 1)(allow default)")

    assert quick("audit", "clean.sb").returncode == 0
    assert quick("audit", "clean.sb", "open.sb").returncode == 1
    missing = quick("audit", "clean.sb", "no.sb")
    assert (missing.returncode, "no.sb" in missing.stderr) == (2, True)
    assert quick("audit", "no.sb").returncode == 3
    assert quick("audit").returncode == 3
    assert quick("audit", "clean.sb", "-D", "X").returncode == 2
    assert desk("audit", "no.sb").returncode == 3


def test_audit_against_a_ceiling(desk: Desk, quick: Callable[..., Done]) -> None:
    """Rules beyond a ceiling are found; those inside it and those of the system are not."""
    (desk.here / "p.sb").write_text(
        f'(version 1)(deny default)(allow file-read* (subpath "{desk.here}") (subpath "/usr/lib"))'
        f'(allow file-write* (subpath "{desk.here}/out"))(allow network-outbound (remote ip))'
    )
    done = quick("audit", "p.sb", "--ceiling", "default", "--format", "json")
    told = [
        f["message"]
        for f in json.loads(done.stdout)["profiles"][0]["findings"]
        if f["rule"] == "beyond-ceiling"
    ]
    assert len(told) == 2, told
    assert "/out` may be written" in told[0] + told[1]
    assert "network" in told[0] + told[1]
    (desk.here / "ceiling.yaml").write_text(
        "sandbox: {fs_read: ['${workspace}'], fs_write: ['${workspace}/out'], network: true}\n"
    )
    assert "beyond-ceiling" not in quick("audit", "p.sb", "--ceiling", "ceiling.yaml").stdout


def test_diff(desk: Desk, quick: Callable[..., Done], snapshot: Snapshot) -> None:
    """What two profiles decide differently, wider and narrower, and nothing for two that only look different."""
    (desk.here / "a.sb").write_text(
        '(version 1)(deny default)(allow file-read* (subpath "/a"))(allow mach-lookup (global-name "x.y"))'
    )
    (desk.here / "b.sb").write_text(
        '(version 1)(deny default)(allow file-read* (literal "/a"))(allow network-outbound (remote ip))'
    )
    (desk.here / "c.sb").write_text(
        '; the same in other words\n(version 1)\n(allow mach-lookup (global-name "x.y"))\n'
        '(with-filter (subpath "/a") (allow file-read*))\n(deny default)'
    )
    done = quick("diff", "a.sb", "b.sb")
    assert (done.returncode, done.stderr) == (1, "")
    snapshot("diff.txt", done.stdout)
    same = quick("diff", "a.sb", "c.sb")
    assert (same.returncode, same.stdout) == (0, "no difference found\n")
    answer = json.loads(quick("diff", "a.sb", "b.sb", "--json").stdout)
    assert {(one["operation"], one["before"]["decision"]) for one in answer["differences"]} >= {
        ("mach-lookup", "allowed"),
        ("network-outbound", "denied"),
    }


def test_profile_of_a_skill(desk: Desk, quick: Callable[..., Done], snapshot: Snapshot) -> None:
    """The whole Seatbelt text of an example skill, and the same from an audit's point of view: nothing but notes."""
    ceiling = str(SKILLS / "ceiling.yaml")
    done = desk(
        "profile", str(SKILLS / "deploy-checker"), "--ceiling", ceiling, "--backend", "seatbelt", "--network",
        PATH="/usr/bin:/bin",  # a Python that is found elsewhere has a prefix, which the profile names
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    parameters = [line for line in done.stdout.splitlines() if line.startswith("; -D ")]
    snapshot(
        "profile-seatbelt.txt", "\n".join(line for line in done.stdout.splitlines() if line not in parameters)
    )
    values = dict(line.removeprefix("; -D ").split("=", 1) for line in parameters)
    assert str(desk.here) in values.values()
    (desk.here / "p.sb").write_text(done.stdout)
    definitions = [word for name, value in values.items() for word in ("-D", f"{name}={value}")]
    audited = json.loads(quick("audit", "p.sb", "--json", *definitions).stdout)
    assert audited["profiles"][0]["loads"]
    # The folders of this test lie in /tmp, which is a link on a Mac.
    kinds = {f["rule"] for f in audited["profiles"][0]["findings"] if f["severity"] != "note"}
    assert kinds <= {"symlink-path"}
    asked = desk(
        "explain",
        "--profile",
        "p.sb",
        *definitions,
        "--operation",
        "file-write-create",
        str(desk.here / "out/x"),
    )
    assert asked.returncode == 0, asked.stdout


def test_profile_for_linux(confining: Desk) -> None:
    """The same command shows what Linux would enforce."""
    done = confining("profile", str(SKILLS / "hello"), "--backend", "linux-1")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.match(r"landlock ABI \d+", done.stdout)
    wrong = confining("profile", str(SKILLS / "hello"), "--backend", "passthrough")
    assert (wrong.returncode, "backend-unknown" in wrong.stderr) == (2, True)


def test_hostile_text_of_a_profile_is_escaped(desk: Desk, quick: Callable[..., Done]) -> None:
    """A profile's own text can't move the cursor or pass for skillrun's words."""
    (desk.here / "p.sb").write_text(
        '(version 1)(deny default)(allow file-read* (subpath "/a\x1b[2J\u202e/"))(allow oops\x1b[31m)'
    )
    for words_ in (
        ("audit", "p.sb"),
        ("audit", "p.sb", "--json"),
        ("explain", "--profile", "p.sb", "--operation", "file-read-data", "/\x1b[2Jx"),
    ):
        done = quick(*words_)
        assert "\x1b" not in done.stdout + done.stderr
        assert "\u202e" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("", 1),
        ("\x00\x01", 1),
        ("(" * 100_000, 4),  # deeper than is read here: whether a Mac takes it is unknown
        ('(version 1)"', 1),
        ("\ufeff(version 1)(deny default)", 1),
    ],
)
def test_garbage_is_told(desk: Desk, quick: Callable[..., Done], text: str, answer: int) -> None:
    """A file that is no profile is a finding with a name, never a traceback."""
    (desk.here / "p.sb").write_text(text)
    assert quick("audit", "p.sb").returncode == 1
    told = quick("explain", "--profile", "p.sb", "--operation", "signal", "self")
    assert told.returncode == answer
    assert ("nothing would start" in told.stderr) is (answer == 1 and bool(text)), told.stderr
    assert ("a limit of this reader" in told.stderr) is (answer == 4), told.stderr
    (desk.here / "bytes.sb").write_bytes(b'(version 1)(deny default)(allow file-read* (literal "/\xff"))')
    assert quick("audit", "bytes.sb").returncode == 1
