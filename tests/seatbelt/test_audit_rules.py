"""Each rule of the audit: a profile that it flags, and one that is nearly wrong and stays silent."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from made import policy
from vectors import undisputed

from skillrun.check.profile.audit import assumed, audit
from skillrun.check.profile.finding import Confidence, Limits
from skillrun.check.profile.rules import RULES
from skillrun.problem import Severity
from skillrun.sandbox.seatbelt.difference import differences
from skillrun.sandbox.seatbelt.parse import parse
from skillrun.sandbox.seatbelt.render import render

HEAD = "(version 1)\n(deny default)\n"
RUNS = '(allow process-exec* (subpath "/bin"))\n'
HOME = "/Users/ann"

# Rule: what it flags, and what is nearly the same and right.
CASES: dict[str, tuple[str, str]] = {
    "allow-default": ("(version 1)\n(allow default)", "(version 1)\n(deny default)"),
    "root-grant": (HEAD + '(allow file-write* (subpath "/"))', HEAD + '(allow file-write* (literal "/"))'),
    "blanket-mach-lookup": (HEAD + "(allow mach-lookup)", HEAD + '(allow mach-lookup (global-name "com.apple.logd"))'),
    "keychain-service": (
        HEAD + '(allow mach-lookup (global-name-prefix "com.apple.sec"))',
        HEAD + '(allow mach-lookup (global-name-prefix "com.apple.s"))\n(deny mach-lookup (global-name-prefix "com.apple.sec") (global-name "com.apple.SecurityServer"))',
    ),
    "launch-services": (HEAD + "(allow lsopen)", HEAD + '(allow mach-lookup (global-name "com.apple.lsd"))'),
    "apple-events": (
        HEAD + "(allow appleevent-send)",
        HEAD + '(allow appleevent-send (appleevent-destination "com.apple.systemevents"))',
    ),
    "pasteboard-service": (
        HEAD + '(allow mach-lookup (global-name "com.apple.pasteboard.1"))',
        HEAD + '(allow mach-lookup (global-name "com.apple.pasteboard"))',
    ),
    "home-write": (
        HEAD + f'(allow file-write* (subpath "{HOME}"))',
        HEAD + f'(allow file-write* (subpath "{HOME}/work"))',
    ),
    "start-file-write": (
        HEAD + f'(allow file-write* (regex #"^{HOME}/[.]z"))',
        HEAD + f'(allow file-write* (regex #"^{HOME}/[.]z"))\n(deny file-write* (prefix "{HOME}/.zsh") (prefix "{HOME}/.zp"))',
    ),
    "agent-config-write": (
        HEAD + f'(allow file-write* (subpath "{HOME}/.claude"))',
        HEAD + f'(allow file-write* (subpath "{HOME}/.claude/projects"))',
    ),
    "profile-write": (HEAD + '(allow file-write* (subpath "/profiles"))', HEAD + '(allow file-write* (subpath "/profile"))'),
    "unix-sockets": (HEAD + "(allow network-outbound)", HEAD + "(allow network-outbound (remote ip))"),
    "docker-socket": (
        HEAD + '(allow network-outbound)\n(deny file-read* file-write* (literal "/private/var/run/docker.sock"))',
        HEAD + f'(allow network-outbound)\n(deny network-outbound (literal "/private/var/run/docker.sock") (literal "/Users/you/.docker/run/docker.sock") (literal "{HOME}/.docker/run/docker.sock"))',
    ),
    "local-on-outbound": (
        HEAD + '(allow network-outbound (local ip "localhost:*"))',
        HEAD + '(allow network-outbound (remote ip "localhost:*"))',
    ),
    "whole-folder": (HEAD + '(allow file-read* (subpath "/dev"))', HEAD + '(allow file-read* (subpath "/dev/fd"))'),
    "leaves-sandbox": (
        HEAD + '(allow process-exec (literal "/bin/ps") (with no-sandbox))',
        HEAD + '(allow process-exec (literal "/bin/ps") (with report))',
    ),
    "built-in-allow": (
        HEAD,
        HEAD + "(deny process-info* file-map-executable nvram* iokit-get-properties file-link)",
    ),
    "procargs": (HEAD + "(allow sysctl-read)", HEAD + '(allow sysctl-read (sysctl-name-prefix "kern.o"))'),
    "undone-deny": (
        HEAD + '(allow file-read-data (subpath "/a"))\n(deny file-read* (literal "/a/secret"))',
        HEAD + '(allow file-read-data (subpath "/a"))\n(deny file-read* file-read-data (literal "/a/secret"))',
    ),
    "shadowed-rule": (
        HEAD + '(deny file-read* (literal "/a/secret"))\n(allow file-read* (subpath "/a"))',
        HEAD + '(allow file-read* (subpath "/a"))\n(deny file-read* (literal "/a/secret"))',
    ),
    "duplicate-rule": (
        HEAD + '(allow file-read* (literal "/a"))\n(allow file-read* (literal "/a"))',
        HEAD + '(allow file-read* (literal "/a"))\n(allow file-write* (literal "/a"))',
    ),
    "dead-rule": (HEAD + '(deny file-read* (subpath "/a/"))', HEAD + '(deny file-read* (subpath "/"))'),
    "symlink-path": (HEAD + '(deny file-read* (subpath "/tmp/x"))', HEAD + '(allow file-read-metadata (literal "/tmp"))'),
    "glob-in-path": (HEAD + '(deny file-read* (subpath "/Users/*/x"))', HEAD + '(deny file-read* (regex #"^/Users/[^/]*/x$"))'),
    "unsupported-regex": (HEAD + '(deny file-read* (regex #"^/a/(?:b)$"))', HEAD + '(deny file-read* (regex #"^/a/(b)$"))'),
    "double-escaped-regex": (HEAD + '(deny file-read* (regex #"^/a\\\\.b$"))', HEAD + '(deny file-read* (regex "^/a\\\\.b$"))'),
    "unanchored-regex": (HEAD + '(allow file-read* (regex #"/a$"))', HEAD + '(allow file-read* (regex #"^/a$"))'),
    "unquoted-interpolation": (
        HEAD + '(allow file-read* (regex (string-append "^" (param "P") "$")))',
        HEAD + '(allow file-read* (regex (string-append "^" (regex-quote (param "P")) "$")))',
    ),
    "missing-unlink-protection": (
        HEAD + '(allow file-write* (subpath "/w"))\n(deny file-write* (subpath "/w/.git/hooks"))',
        HEAD + '(allow file-write* (subpath "/w"))\n(deny file-write* (subpath "/w/.git/hooks"))\n(deny file-write-unlink (literal "/w/.git") (literal "/w"))',
    ),
    "missing-root": (HEAD + RUNS, HEAD + RUNS + '(allow file-read* (literal "/"))'),
    "size": (
        HEAD + "(allow file-read*\n" + "\n".join(f'  (literal "/a/{n:05}")' for n in range(3000)) + ")",
        HEAD + "\n".join(f'(allow file-read* (literal "/a/{n:05}"))' for n in range(300)),
    ),
    "unknown-import": (HEAD + '(import "system.sb")', HEAD + '; (import "system.sb")'),
    "beyond-ceiling": (HEAD + '(allow file-write* (subpath "/work/other"))', HEAD + '(allow file-write* (subpath "/work/out/deep"))'),
}  # fmt: skip
LIMITS = Limits(read=("/work",), write=("/work/out",), network=False)


def found(
    text: str, *, name: str = "/profiles/p.sb"
) -> dict[str, tuple[Severity, Confidence, str, str | None]]:
    """Audit a text, and return the first finding of each rule."""
    profile, _ = assumed(text, {}, path=Path(name))
    told: dict[str, tuple[Severity, Confidence, str, str | None]] = {}
    for finding in audit(profile, limits=LIMITS):
        problem = finding.problem
        told.setdefault(problem.rule, (problem.severity, finding.confidence, problem.message, problem.help))
    return told


def test_every_rule_has_a_case() -> None:
    """Each rule has a profile that it flags and one that it does not, and a page."""
    named = {rule.__name__.rpartition(".")[2].replace("_", "-") for rule in RULES}
    assert named == set(CASES)
    for rule in RULES:
        assert len((rule.__doc__ or "").strip()) > 60, rule


@pytest.mark.parametrize("rule", CASES)
def test_flagged_and_near_miss(rule: str) -> None:
    """A rule flags what it is about, with what to do, and nothing that only looks like it."""
    wrong, right = CASES[rule]
    flagged = found(wrong)

    assert rule in flagged, flagged
    assert flagged[rule][3], "a finding says what to change"
    assert rule not in found(right)


def test_findings_have_places() -> None:
    """A finding points at the line and the filter that it is about."""
    profile = parse(HEAD + '(allow file-read*\n  (literal "/a")\n  (subpath "/tmp/x"))', path=Path("/p.sb"))
    finding = next(one for one in audit(profile) if one.problem.rule == "symlink-path")

    assert finding.problem.at is not None
    assert (finding.problem.at.line, finding.problem.at.column) == (5, 3)


@pytest.mark.parametrize(
    "row",
    [
        row
        for row in undisputed()
        if row.values[0] is None or (row.values[0]["diagnostic"] and row.values[0]["loads"])
    ],
)
def test_what_a_vector_is_about_is_found(row: dict[str, str]) -> None:
    """Each published profile with something to say about it is flagged for just that."""
    if row["diagnostic"] == "unknown-operation-queried":
        return  # of the question, not of the profile
    assert row["diagnostic"] in {
        finding.problem.rule for finding in audit(parse(row["profile"], row["params"]))
    }  # type: ignore[arg-type]


@pytest.mark.parametrize("network", [False, True])
def test_our_own_profile_has_no_findings(network: bool) -> None:  # noqa: FBT001 - both cases
    """What skillrun writes passes its own audit, but for what is meant."""
    made = policy(
        read=["/Users/u/data"], write=["/Users/u/work/out"], denied=["/Users/u/data/no"], network=network
    )
    rendered = render(*made)
    profile = parse(rendered.text, dict(rendered.parameters))

    assert [
        finding.problem for finding in audit(profile) if finding.problem.severity is not Severity.NOTE
    ] == []


def test_an_audit_takes_unknown_parameters_as_set() -> None:
    """A rule that a parameter turns on is looked at, and the values that were made up are told."""
    text = (
        HEAD
        + '(if (param "OPEN") (allow network-outbound))\n(allow file-write* (subpath (param "HOME_DIR")))'
    )
    profile, made_up = assumed(text, {})

    assert made_up == {"OPEN": "/param/OPEN", "HOME_DIR": "/Users/you"}
    assert {"unix-sockets", "home-write"} <= {finding.problem.rule for finding in audit(profile)}
    profile, made_up = assumed(text, {"OPEN": "1", "HOME_DIR": "/h"})
    assert made_up == {}


def test_a_profile_of_many_rules_takes_no_hours() -> None:
    """What compares rules with each other stops at a bound, and says so."""
    rules = "\n".join(f'(deny file-ioctl (subpath "/Users/u/p{n}/x"))' for n in range(1010))
    started = time.process_time()
    told = [(one.problem.rule, one.problem.message) for one in audit(parse(HEAD + rules))]

    assert any(rule == "size" and "only the first 1000 were compared" in message for rule, message in told)
    assert time.process_time() - started < 20


def test_differences_of_large_profiles() -> None:
    """What two profiles differ in is found, told for each operation, and what is the same in both is not."""
    rules = "\n".join(
        f'(deny file-read* file-write* (subpath "/Users/u/p{n}/x"))(allow file-read-data (subpath "/Users/u/p{n}"))'
        for n in range(60)
    )
    profile = parse(HEAD + rules)
    other = parse(HEAD + rules.replace("/Users/u/p9/x", "/Users/u/p9/y"))
    assert list(differences(profile, other)) == [], (
        "the exact operation allows reading in both, nothing allows the rest"
    )
    wider = parse(HEAD + rules + '(allow file-write-data file-write-create (literal "/Users/u/p9/z"))')
    told = {(one.operation, one.target) for one in differences(profile, wider)}
    assert told == {("file-write-data", "/Users/u/p9/z"), ("file-write-create", "/Users/u/p9/z")}
