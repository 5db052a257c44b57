"""A change is not believed about what guards it: ceiling, lock, baseline and ignores come from the base."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from repository import commit, git

from skillrun.check import baseline as baselines
from skillrun.check import lock as locks
from skillrun.check.engine import check
from skillrun.check.policy import Files, policy_from
from skillrun.check.session import find_subjects
from skillrun.check.store import write_store
from skillrun.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from collection import Collection

    from skillrun.check.engine import Report
    from skillrun.check.finding import Finding

NETWORK = {
    "run.py": "#!/usr/bin/env python3\nimport requests\nHOST = 'https://a.example.com'\nrequests.get(HOST)\n"
}
IGNORED = {
    "run.py": NETWORK["run.py"].replace("(HOST)", "(HOST)  # skillrun: ignore[undeclared-network] agreed")
}


def files(collection: Collection) -> Files:
    """Say where lock and baseline lie."""
    return Files(collection.folder / locks.FILE_NAME, collection.folder / baselines.FILE_NAME)


def guarded(collection: Collection, base: str = "main", ceiling: str | None = None) -> Report:
    """Check as CI does: with the policy of the base, lock and baseline included."""
    session = collection.session(ceiling)
    policy = policy_from(base, session, files(collection), collection.folder)
    catalog, subjects = find_subjects(session, policy.project)
    more = [
        *policy.findings,
        *locks.compare(
            policy.lock, subjects, path=files(collection).lock, roots=session.labels(policy.project)
        ),
    ]
    report = check(catalog, policy.project, subjects=subjects, more=more, belief=policy.belief)
    return (
        report
        if policy.baseline is None
        else baselines.apply(report, policy.baseline, session.labels(policy.project))
    )


def about(report: Report, *rules: str) -> list[Finding]:
    """Give what some rules found."""
    return [finding for finding in report.findings if finding.rule in rules]


def approve(collection: Collection, ceiling: str | None = None) -> None:
    """Write a lock for everything that lies here."""
    path = files(collection).lock
    write_store(path, locks.Lock(path, {}).with_entries(collection.subjects(ceiling)).text())


def branch(collection: Collection) -> None:
    """Commit what lies here on the main line, and go on a branch."""
    commit(collection.folder)
    git(collection.folder, "checkout", "-q", "-b", "change")


def test_a_wider_ceiling_does_not_count(collection: Collection) -> None:
    """A change that widens the ceiling and asks for more is judged by the old ceiling, and said."""
    collection.skill("demo")
    collection.write("ceiling.yaml", "sandbox: {fs_write: []}\n")
    branch(collection)
    collection.write("ceiling.yaml", 'sandbox: {fs_write: ["./out"], network: true}\n')
    collection.skill("demo", 'fs_write: ["./out"]\nnetwork: true\n')
    report = guarded(collection, ceiling="ceiling.yaml")
    assert [one.key for one in about(report, "policy-changed")] == [("file", "ceiling.yaml", "changes")]
    assert [one.key[0] for one in about(report, "request-refused")] == ["fs_write", "network"]
    assert about(report, "request-refused")[0].related[0].path == collection.folder / "ceiling.yaml"


def test_a_project_file_that_is_gone(collection: Collection) -> None:
    """A change that removes the project's own limit is still limited by it."""
    collection.skill("demo", "timeout: 50\n")
    collection.write("skillrun.yaml", "sandbox: {timeout: 10}\n")
    branch(collection)
    (collection.folder / "skillrun.yaml").unlink()
    report = guarded(collection)
    assert [one.key for one in about(report, "policy-changed")] == [("file", "skillrun.yaml", "removes")]
    assert [one.problem.message for one in about(report, "request-narrowed")] == [
        "asks for `timeout: 50` and gets `10`"
    ]


def test_a_new_lock_does_not_count(collection: Collection) -> None:
    """A change that approves itself is not approved."""
    collection.skill("demo", "timeout: 10\n")
    approve(collection)
    branch(collection)
    collection.skill("demo", "timeout: 20\n")
    approve(collection)
    report = guarded(collection)
    assert {one.rule for one in report.findings} == {"policy-changed", "lock-permission", "lock-file"}
    (collection.folder / locks.FILE_NAME).unlink()
    assert {one.key[2] for one in about(guarded(collection), "policy-changed")} == {"removes"}


def test_a_new_baseline_does_not_count(collection: Collection) -> None:
    """A change that accepts its own findings does not hide them, nor the change of the baseline itself."""
    collection.skill("demo")
    branch(collection)
    collection.skill("demo", "timeout: 600\n")
    made = baselines.baseline_of(collection.report(), files(collection).baseline, ("skills",), None)
    write_store(made.path, made.text())
    assert {one.rule for one in guarded(collection).findings} >= {"policy-changed", "request-narrowed"}
    commit(collection.folder)
    git(collection.folder, "branch", "-f", "main", "HEAD")
    assert not about(guarded(collection), "policy-changed", "request-narrowed")


def test_a_new_ignore_does_not_count(collection: Collection) -> None:
    """A comment that a change brings along hides nothing, and is a finding; on the main line it hides."""
    collection.skill("demo", scripts=NETWORK)
    branch(collection)
    collection.skill("demo", scripts=IGNORED)
    report = guarded(collection)
    assert [one.rule for one in about(report, "policy-changed", "undeclared-network")] == [
        "undeclared-network",
        "policy-changed",
    ]
    assert report.ignored == ()
    commit(collection.folder)
    git(collection.folder, "branch", "-f", "main", "HEAD")
    merged = guarded(collection)
    assert not about(merged, "policy-changed", "undeclared-network")
    assert [one.reason for one in merged.ignored] == ["agreed"]


def test_an_old_ignore_hides_nothing_new(collection: Collection) -> None:
    """The line with the comment is the same and the host is another one: that was never looked at."""
    collection.skill("demo", scripts=IGNORED)
    branch(collection)
    collection.skill(
        "demo", scripts={"run.py": IGNORED["run.py"].replace("a.example.com", "evil.example.com")}
    )
    assert [one.key[1] for one in about(guarded(collection), "undeclared-network")] == [
        "evil.example.com:443"
    ]


def test_an_ignore_of_a_policy_finding(collection: Collection) -> None:
    """No ignore and no baseline covers a change of the policy."""
    collection.skill("demo", "# skillrun: ignore[policy-changed] please\n")
    branch(collection)
    collection.write("skillrun.yaml", "sandbox: {timeout: 50}\n")
    assert about(guarded(collection), "policy-changed")


def test_an_ignore_of_what_was_approved(collection: Collection) -> None:
    """An ignore that the base has hides no permission that nobody approved, and a baseline takes none in."""
    front = "timeout: {} # skillrun: ignore[lock-permission] trust me\n"
    collection.skill("demo", front.format(10))
    approve(collection)
    branch(collection)
    collection.skill("demo", front.format(20))
    report = guarded(collection)
    assert [one.key[0] for one in about(report, "lock-permission")] == ["timeout"]
    made = baselines.baseline_of(report, files(collection).baseline, ("skills",), None)
    assert {one.rule for one in made.entries.values()} == set()


def test_a_folder_named_like_the_base(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that a change calls `main` is not taken for the revision."""
    monkeypatch.chdir(collection.folder)
    collection.skill("demo")
    collection.write("skillrun.yaml", "sandbox: {timeout: 10}\n")
    branch(collection)
    collection.write("main/skillrun.yaml", "sandbox: {timeout: 60}\n")
    collection.skill("demo", "timeout: 50\n")
    assert about(guarded(collection), "request-narrowed")
    with pytest.raises(UsageError, match="no revision"):
        guarded(collection, "origin/main")


def test_a_folder_as_base(collection: Collection, tmp_path: Path) -> None:
    """Another folder can speak as well, when it is written as one."""
    collection.skill("demo", "timeout: 50\n")
    there = tmp_path / "policy"
    there.mkdir()
    there.chmod(0o755)
    (there / "skillrun.yaml").write_text("sandbox: {timeout: 10}\n")
    (there / "skillrun.yaml").chmod(0o644)
    report = guarded(collection, str(there))
    assert [one.key for one in about(report, "policy-changed")] == [("file", "skillrun.yaml", "removes")]
    assert about(report, "request-narrowed")


def test_a_project_in_a_part_of_the_repository(collection: Collection) -> None:
    """A project below the repository's root is limited by the files of the base from the root down."""
    inner = type(collection)(collection.folder / "part", collection.temporary)
    inner.skill("demo", "timeout: 50\n")
    inner.folder.chmod(0o755)
    collection.write("skillrun.yaml", "sandbox: {timeout: 30}\n")
    inner.write("skillrun.yaml", "sandbox: {timeout: 10}\n")
    branch(collection)
    collection.write("skillrun.yaml", "sandbox: {timeout: 40}\n")
    (inner.folder / "skillrun.yaml").unlink()
    report = guarded(inner)
    assert {one.key for one in about(report, "policy-changed")} == {
        ("file", "skillrun.yaml", "changes"),
        ("file", "part/skillrun.yaml", "removes"),
    }
    assert about(report, "request-narrowed")[0].problem.message == "asks for `timeout: 50` and gets `10`"


def test_a_broken_policy_in_the_base(collection: Collection) -> None:
    """What is wrong in the base is a configuration error that says which version it is, at a path that a person knows."""
    collection.skill("demo")
    collection.write("skillrun.yaml", "sandbox: {timeout: soon}\n")
    branch(collection)
    collection.write("skillrun.yaml", "sandbox: {timeout: 10}\n")
    with pytest.raises(ConfigError) as wrong:
        guarded(collection)
    assert wrong.value.problem.message.startswith("in `main`: ")
    assert wrong.value.problem.at is not None
    assert wrong.value.problem.at.path == collection.folder / "skillrun.yaml"


def test_a_ceiling_that_the_base_lacks(collection: Collection) -> None:
    """A ceiling that only the change has can't limit the change."""
    collection.skill("demo")
    branch(collection)
    collection.write("ceiling.yaml", "sandbox: {network: true}\n")
    with pytest.raises(ConfigError):
        guarded(collection, ceiling="ceiling.yaml")


def test_trust_and_entries_of_the_base(collection: Collection) -> None:
    """What the base's ceiling says about one skill holds, and for that version only."""
    collection.skill("demo", "trust: core\n")
    digest = collection.subjects()[0].digest
    collection.write(
        "ceiling.yaml",
        f'trusted: [{{skill: ./skills/demo, digest: "{digest}"}}]\nskills: {{demo: {{ceiling: {{timeout: 5}}}}}}\n',
    )
    branch(collection)
    assert not about(guarded(collection, ceiling="ceiling.yaml"), "unlisted-trust")
    collection.skill("demo", "trust: core\ntimeout: 50\n")
    report = guarded(collection, ceiling="ceiling.yaml")
    assert about(report, "unlisted-trust")
    assert about(report, "request-narrowed")[0].problem.message == "asks for `timeout: 50` and gets `5`"


def test_nothing_is_left(collection: Collection) -> None:
    """What was written out of a revision is gone afterwards."""
    collection.skill("demo", scripts=IGNORED)
    branch(collection)
    guarded(collection)
    assert list(collection.temporary.iterdir()) == []
