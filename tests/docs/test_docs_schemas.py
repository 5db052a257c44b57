"""The schemas for editors say what the readers say: over a grid of values, the corpus, and the texts of other tests."""

from __future__ import annotations

import ast
import gzip
import itertools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from skillrun.errors import ConfigError
from skillrun.permissions.layers import load_layers
from skillrun.permissions.reading import LIMIT_NAMES
from skillrun.permissions.request import ALL_KEYS, TOP_KEYS, read_request
from skillrun.skills.model import Skill
from skillrun.skills.node import Items, Mapping, Node
from skillrun.skills.strict_yaml import YamlProblem, read_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT.parent / "shared" / "corpus" / "front_matter.jsonl.gz"
DIGEST = "sha256:" + "0" * 64


def validator(name: str) -> jsonschema.Draft7Validator:
    """Load a schema as it lies in the repository, checked itself."""
    schema = json.loads((ROOT / "schemas" / f"{name}.schema.json").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


SKILL_MD = validator("skill-md")
SKILLRUN_YAML = validator("skillrun-yaml")


def bare(node: Node) -> Any:
    """Turn a strict tree into what an editor sees."""
    if isinstance(node, Mapping):
        return {entry.key: bare(entry.value) for entry in node}
    return [bare(item) for item in node] if isinstance(node, Items) else node.value


def tree(text: str) -> Mapping | None:
    """Read a text, None when it is no strict YAML: about that a schema says nothing."""
    try:
        return read_yaml(text, path=Path("SKILL.md"))
    except YamlProblem:
        return None


def request_is_read(front: Mapping) -> bool:
    """Whether the reader takes a front matter's request."""
    here = Path("/skill")
    return read_request(Skill("demo", "demo", "", here, here, None, here / "SKILL.md", front, (), ())).valid


def file_is_read(text: str, folder: Path, *, own: bool = False) -> bool:
    """Whether `load_layers` takes a skillrun.yaml: named with `--ceiling`, or as the operator's own."""
    file = folder / "named.yaml"
    file.write_text(text, encoding="utf-8")
    try:
        load_layers(
            ceiling=None if own else file,
            workspace=folder,
            config_file=file if own else None,
            machine_file=None,
            home=folder,
        )
    except ConfigError:
        return False
    return True


# Every kind of YAML value, and what somebody writes for a path, a host, a name, a number, a size, a word.
VALUES = [
    *(
        "null",
        "true",
        "false",
        "5",
        "0",
        "-1",
        "0.5",
        "0.0",
        "1.5e3",
        ".inf",
        "1e300",
        "''",
        "' '",
        "[]",
        "{}",
        "[[]]",
    ),
    *(
        "[{}]",
        "[null]",
        "[5]",
        "[true]",
        "{a: b}",
        "word",
        "'null'",
        "'~'",
        "'true'",
        "'FALSE'",
        "'yes'",
        "'5'",
        "' 5 '",
    ),
    *(
        "'0'",
        "'-5'",
        "'+5'",
        "'0x10'",
        "'0x0'",
        "'1e3'",
        "'0.0'",
        "'.5'",
        "'1m'",
        "./data",
        "'./a ./b'",
        "a,b",
        "'./a, ./b'",
    ),
    *(
        "[./data]",
        "['a,b']",
        "['a b']",
        "['']",
        "['~']",
        "['~/x']",
        "['~root/x']",
        "['$HOME/x']",
        "['${workspace}']",
    ),
    *(
        "['${workspace}/x']",
        "['${workspace}x']",
        "['a/${skill}']",
        "['${home}/x']",
        "['*.txt']",
        "['a?b']",
        "['{a,b}']",
    ),
    *(
        "['[x]']",
        '["a\\tb"]',
        '["a\\0b"]',
        "[/]",
        "['..']",
        "['../x']",
        "['a/../b']",
        "['a..b']",
        "'../x'",
        "'~/x'",
        "'$X'",
    ),
    *(
        "[a.com]",
        "['a.com:443']",
        "['a.com:0']",
        "['a.com:65536']",
        "['a.com:80-90']",
        "['a.com:']",
        "['a.com:x']",
    ),
    *(
        "['https://a.com']",
        "['a.com/x']",
        "['*']",
        "['*.com']",
        "['*.a.com']",
        "['*.github.io']",
        "['*.x.github.io:443']",
    ),
    *(
        "['a..com']",
        "['-a.com']",
        "['a.com.']",
        "['127.0.0.1']",
        "['127.1']",
        "['0x7f.1']",
        "['1.2.3.256']",
        "['[::1]']",
    ),
    *(
        "['[::1]:443']",
        "['::1']",
        "['[::1']",
        "['bücher.de']",
        "[localhost]",
        "['A.COM:00443']",
        "['a_b.com']",
        "['a.com:99999']",
    ),
    *(
        "'a.com b.com:80'",
        "'a.com,b.com'",
        "[TZ]",
        "['A-B']",
        "['1A']",
        "['A B']",
        "TZ",
        "'TZ LANG'",
        "external",
        "core",
    ),
    *(
        "[external]",
        "'core '",
        "workspace",
        "skill",
        "scratch",
        "' skill '",
        "full",
        "confined",
        "none",
        "Confined",
    ),
    *(
        "{memory: 1GiB}",
        "{memory: 1}",
        "{memory: 0}",
        "{memory: 0B}",
        "{memory: 1 GiB}",
        "{memory: 1gb}",
        "{memory: 1.5}",
    ),
    *(
        "{memory: null}",
        "{memory: 1GiB, ram: 1}",
        "{processes: 5}",
        "{processes: 5B}",
        "{processes: '5'}",
        "{processes: 0}",
    ),
    *(
        "{output: 0}",
        "{output: 0B}",
        "{file_size: '0'}",
        "{output: -1}",
        "{memory: 4611686018427387903}",
        "1GiB",
        "'64'",
        "'0B'",
    ),
    *(
        "{memory: 4611686018427387904}",
        "{'x.py': {}}",
        "{'x.py': null}",
        "{'x.py': 5}",
        "{'x.py': {timeout: 5}}",
        f"'{DIGEST}'",
    ),
]
# What JSON Schema can't say: the schema takes these and the reader does not.
GAPS = {
    "['a.com:90-80']": "no pattern compares two numbers",
    "['[:::]']": "no pattern knows every form of an IPv6 address",
    "9223372036854775808": "for a schema 1e300 is a whole number too, and the reader takes that",
    ".nan": "it compares with nothing, so no bound keeps it out",
    "{memory: 1.0}": "for a schema 1.0 is a whole number",
    "{memory: 999999999999999999TiB}": "no pattern multiplies",
}


def leaves(value: Any) -> Iterator[Any]:
    """Yield every scalar of a value."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    if inner is None:
        yield value
    for one in inner or ():
        yield from leaves(one)


def odd_number(value: Any) -> bool:
    """Whether a value holds a number of the gaps above: a whole one written with a point, or none at all."""
    return any(isinstance(one, float) and (one != one or one.is_integer()) for one in leaves(value))  # noqa: PLR0124 - NaN


def disagreement(text: str, schema: jsonschema.Draft7Validator, *, read: bool) -> str | None:
    """Say what is wrong when schema and reader differ."""
    front = tree(text)
    assert front is not None, text
    faults = [error.message for error in schema.iter_errors(bare(front))]
    if read == (not faults) or (not read and odd_number(bare(front))):
        return None
    return f"{text!r}: the reader {'takes' if read else 'refuses'} it, the schema says {faults or 'nothing'}"


def agreed(found: list[str | None]) -> None:
    """Fail with every disagreement, one a line."""
    lines = [line for line in found if line]
    assert not lines, "\n" + "\n".join(lines)


def requests() -> list[str]:
    """Write every value at every key in every place of a request."""
    top = [f"{key}: {value}" for key, value in itertools.product(ALL_KEYS, VALUES)]
    below = [
        f"metadata: {{skillrun: {{{key}: {value}}}}}" for key, value in itertools.product(ALL_KEYS, VALUES)
    ]
    dotted = [*ALL_KEYS, *(f"limits.{name}" for name in LIMIT_NAMES)]
    strings = [f"metadata: {{skillrun.{key}: {value}}}" for key, value in itertools.product(dotted, VALUES)]
    return [*top, *below, *strings]


SPELLINGS = [
    *(
        "fs_reads",
        "fs-read",
        "FS_READ",
        "fsread",
        "fs_raed",
        "fs_rea",
        "fs_readd",
        "fs_rread",
        "fs_write",
        "fswrites",
    ),
    *(
        "Network",
        "networks",
        "netwrok",
        "net_work",
        "internet",
        "timeouts",
        "time_out",
        "time-out",
        "Timeout",
        "trusts",
    ),
    *(
        "trusted",
        "thrust",
        "rust",
        "crust",
        "trus",
        "skillrun",
        "skillrun.fs_read",
        "skillrunner",
        "env",
        "limits",
        "envs",
    ),
    *(
        "deny",
        "x",
        "fs_read_",
        "_fs_read",
        "fs__read",
        "read",
        "writes",
        "license",
        "allowed-tools",
        "tust",
        "trsut",
    ),
]
PLACES = [
    *(f"{key}: []" for key in SPELLINGS),
    *(f"metadata: {{skillrun: {{{key}: null}}}}" for key in SPELLINGS),
    *(
        f"metadata: {{{key}: null}}"
        for key in (*SPELLINGS, "skill-run", "Skillrun", "skilrun", "skillruns", "skill_run")
    ),
    *(
        f"metadata: {{skillrun.{key}: null}}"
        for key in (*SPELLINGS, "limits.ram", "fs_read.x", "limits.memory.x")
    ),
    *(
        f"metadata: {value}"
        for value in ("null", "text", "[]", "{}", "{skillrun: null}", "{skillrun: []}", "{skillrun: x}")
    ),
    *(
        f"{one}: null\n{two}"
        for one, two in itertools.product(
            TOP_KEYS, ("metadata: {skillrun: {trust: core}}", "metadata: {skillrun.network: 'true'}")
        )
    ),
    "metadata: {skillrun: {trust: core}, skillrun.trust: core}",
    "metadata: {skillrun: {trust: core}, skillrun.env: TZ}",
    "metadata: {skillrun: {limits: {}}, skillrun.limits.memory: 1GiB}",
    "metadata: {skillrun.limits: null, skillrun.limits.memory: 1GiB}",
    "metadata: {skillrun.limits.memory: 1GiB, skillrun.limits.output: '5'}",
    "permissions: {fs_read: [x]}",
    "other: 5",
]


def test_the_schema_of_a_request_agrees_with_the_reader() -> None:
    """Every value at every key, in every place and with every misspelling, is judged alike."""
    rows = [*requests(), *PLACES]
    fronts = [(text, tree(text)) for text in rows]
    wrong = [disagreement(text, SKILL_MD, read=request_is_read(front)) for text, front in fronts if front]
    assert len(wrong) > 4000
    agreed(wrong)


def files() -> list[str]:
    """Write every value at every key of a skillrun.yaml."""
    ceiling = (
        "enabled",
        "fs_read",
        "fs_write",
        "deny",
        "network",
        "timeout",
        "env",
        "limits",
        "require",
        "fs_reads",
    )
    shapes = ("sandbox: {{{}: {}}}", "floor: {{{}: {}}}", "skills: {{demo: {{ceiling: {{{}: {}}}}}}}")
    # A row in each place, but every value only once: the three places share their definitions.
    rows = [shapes[0].format(key, value) for key, value in itertools.product(ceiling, VALUES)]
    rows += [shape.format(key, "null") for shape, key in itertools.product(shapes[1:], ceiling)]
    rows += [shape.format("timeout", value) for shape, value in itertools.product(shapes[1:], VALUES[::9])]
    rows += [
        f"skills: {{demo: {{request: {{{key}: {value}}}}}}}"
        for key, value in itertools.product(ALL_KEYS, VALUES[::3])
    ]
    top = (
        "sandbox",
        "trusted",
        "skills",
        "interpreters",
        "workspaces",
        "tools",
        "floor",
        "sandboxes",
        "fs_read",
    )
    rows += [f"{key}: {value}" for key, value in itertools.product(top, VALUES[::3])]
    rows += [
        f"{where}: {{a: {value}}}" for where, value in itertools.product(("interpreters", "skills"), VALUES)
    ]
    rows += [
        f"tools: {{{key}: {value}}}" for key, value in itertools.product(("max_tools", "approve"), VALUES)
    ]
    rows += [
        f"skills: {{demo: {{{key}: {value}}}}}" for key, value in itertools.product(("digest",), VALUES[::2])
    ]
    rows += [f"trusted: [{{skill: {value}, digest: '{DIGEST}'}}]" for value in VALUES]
    rows += [f"trusted: [{{skill: ~/x, digest: {value}}}]" for value in VALUES]
    rows += ["tools: {x: 5}", "skills: {demo: {note: x}}", "skills: {demo: {digest: null}}"]
    rows += ["trusted: [{skill: ~/x}]", f"trusted: [{{digest: '{DIGEST}'}}]", "trusted: [5]"]
    rows += [f"trusted: [{{skill: ~/x, digest: '{DIGEST}', why: x}}]"]
    return rows


def test_the_schema_of_a_file_agrees_with_the_reader(tmp_path: Path) -> None:
    """Every value at every key of a skillrun.yaml is judged as `load_layers` judges it."""
    rows = files()
    wrong = [disagreement(text, SKILLRUN_YAML, read=file_is_read(text, tmp_path)) for text in rows]
    agreed(wrong)


@pytest.mark.parametrize("value", sorted(GAPS))
def test_what_a_schema_cannot_say_is_known(value: str) -> None:
    """The reader refuses a few values that the schema takes; each is listed with why, and is really one."""
    key = "network" if value.startswith("[") else "limits" if value.startswith("{") else "timeout"
    front = tree(f"metadata: {{skillrun: {{{key}: {value}}}}}")
    assert front is not None
    assert not request_is_read(front)
    assert SKILL_MD.is_valid(bare(front)), f"the schema can say it, though {GAPS[value]}"


def test_the_schemas_agree_about_real_front_matter() -> None:
    """Valid rows of the corpus are valid, those with a wrong request are not."""
    if not CORPUS.is_file():
        pytest.skip("the corpus of real front matter is not beside this checkout")
    with gzip.open(CORPUS, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    seen = {"valid": 0, "request_type": 0}
    for row in rows:
        kind = row["expect"].get("reason", row["expect"]["class"])
        if kind not in seen or "text" not in row:
            continue
        front = tree(row["text"].replace("\r", "").lstrip("\ufeff").split("\n", 1)[-1].rsplit("---", 1)[0])
        if front is None:
            continue  # empty, or cut apart too simply here; reading files is another test's
        read = request_is_read(front)
        assert SKILL_MD.is_valid(bare(front)) == read, (row["repo"], row["path"])
        assert read == (kind == "valid"), (row["repo"], row["path"])
        seen[kind] += 1
    assert seen["valid"] > 3500
    assert seen["request_type"] == 8


def literals() -> list[str]:
    """Collect the texts of the permission tests that are maps: their good and bad requests and ceilings."""
    found: dict[str, None] = {}
    for file in sorted((ROOT / "tests" / "permissions").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and ":" in node.value:
                found[node.value] = None
    return list(found)


def test_the_schemas_agree_about_the_texts_of_other_tests(tmp_path: Path) -> None:
    """What the permission tests write as a request or a ceiling is judged alike."""
    counts = [0, 0]
    wrong = []
    for text in literals():
        front = tree(text)
        if front is None:
            continue
        names = {entry.key for entry in front}
        if names & {"sandbox", "floor", "trusted", "skills", "interpreters", "workspaces", "tools"}:
            counts[0] += 1
            wrong.append(disagreement(text, SKILLRUN_YAML, read=file_is_read(text, tmp_path)))
        elif names & {*ALL_KEYS, "metadata"}:
            counts[1] += 1
            wrong.append(disagreement(text, SKILL_MD, read=request_is_read(front)))
    agreed(wrong)
    assert counts[0] > 60
    assert counts[1] > 40


@pytest.mark.parametrize(
    "text", ["sandbox: {fs_read: [data]}", "workspaces: [work]", "interpreters: {python: bin/python}"]
)
def test_a_relative_path_is_the_readers_to_refuse(text: str, tmp_path: Path) -> None:
    """A schema does not know whose file it looks at: a relative path is right in a project, wrong in your own file."""
    assert SKILLRUN_YAML.is_valid(bare(tree(text)))
    assert file_is_read(text, tmp_path)
    assert not file_is_read(text, tmp_path, own=True)
