"""The generated parts of the pages, each made from the data or by running the code that it is about."""
# ruff: noqa: INP001 - a program of the documentation, not a package

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import keys
import presence
import seatbelt_parts
from rules import check_rules

from skillrun.cli.run import EXIT_OF_RULE
from skillrun.errors import ConfigError, SkillError, UsageError
from skillrun.permissions.capabilities import Capabilities, Limits
from skillrun.permissions.ceiling import CEILING_KEYS
from skillrun.permissions.config import (
    LAYER_KEYS,
    TOP_KEYS,
    Role,
    config_from_node,
    preset_names,
    read_preset,
)
from skillrun.permissions.describe import describe_ceiling
from skillrun.permissions.endpoint import Endpoint
from skillrun.permissions.environment import always_passed
from skillrun.permissions.grant import Grant, Requirement
from skillrun.permissions.place import Place
from skillrun.permissions.reading import LIMIT_NAMES, Reader
from skillrun.permissions.request import ALL_KEYS, read_request
from skillrun.permissions.request import TOP_KEYS as REQUEST_TOP_KEYS
from skillrun.permissions.spelled import Relative, path_fault
from skillrun.permissions.workspace import check_workspace
from skillrun.report.words import size
from skillrun.resources import folder, table
from skillrun.sandbox.backend import Probe
from skillrun.sandbox.environment import environment
from skillrun.sandbox.linux.backend import Linux
from skillrun.sandbox.passthrough import Passthrough
from skillrun.sandbox.policy import Policy
from skillrun.sandbox.seatbelt.backend import Seatbelt
from skillrun.skills.digest import FileIdentity
from skillrun.skills.front_matter import read_front_matter
from skillrun.skills.model import Skill
from skillrun.skills.strict_yaml import read_yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from skillrun.problem import Problem
    from skillrun.sandbox.backend import Backend
    from skillrun.sandbox.guarantee import State

_HERE: Final = Path("SKILL.md")


def grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def code(text: object) -> str:
    """Write a text as code, also one with backticks in it."""
    shown = str(text).replace("\n", "⏎").replace("\t", "⇥")
    return f"`` {shown} ``" if "`" in shown else f"`{shown}`"


def listed(names: Iterable[object]) -> str:
    """Write names as code, commas between them."""
    return ", ".join(code(name) for name in names)


def request_keys() -> str:
    """List the keys of a request: type, where it may stand, meaning."""
    rows = []
    for key in ALL_KEYS:
        where = "top level or `metadata`" if key in REQUEST_TOP_KEYS else "`metadata` only"
        rows.append((code(key), keys.REQUEST[key].type, where, keys.REQUEST[key].meaning))
    return grid(("key", "type", "where", "meaning"), rows)


def request_presence() -> str:
    """Tell absent, null and empty apart for each key of a request, by running them."""
    return grid(("key", "absent", "null", "empty"), presence.request_rows())


def limit_keys() -> str:
    """List the limits with examples of values that are read."""
    samples = ("0", "64", "512KiB", "1.5GiB", "2 GB", "10m")
    rows = []
    for name in LIMIT_NAMES:
        read = [sample for sample in samples if _limit(name, sample) is not None]
        refused = [sample for sample in samples if sample not in read]
        rows.append((code(name), keys.LIMIT_MEANINGS[name], listed(read), listed(refused)))
    return grid(("limit", "meaning", "read", "error"), rows)


def _limit(name: str, text: str) -> object:
    reader = Reader("request")
    tree = read_yaml(f"limits: {{{name}: {text}}}", path=_HERE)
    return reader.limits("limits", tree.entries[0].value)


def string_form() -> str:
    """Show what strings of the string form are read as."""
    samples = (
        ("fs_read", "./data /etc/hosts"),
        ("fs_write", "./out"),
        ("network", "true"),
        ("network", "api.example.com *.example.org:8443"),
        ("timeout", "30"),
        ("trust", "core"),
        ("env", "TZ COLUMNS"),
        ("limits.memory", "512MiB"),
        ("limits.processes", "16"),
        ("cwd", "skill"),
        ("approval", "true"),
        ("fs_read", "./a, ./b"),
        ("network", "yes"),
    )
    rows = []
    for key, text in samples:
        request = _request(f'metadata: {{skillrun.{key}: "{text}"}}')
        asked = ", ".join(code(one.value) for one in request.asked)
        other = {"cwd": code(request.cwd.value), "approval": code(str(request.approval).lower())}.get(key, "")
        wrong = [f"error: {problem.message}" for problem in request.problems]
        rows.append((code(f'skillrun.{key}: "{text}"'), asked or other if not wrong else wrong[0]))
    return grid(("written below `metadata`", "asks for"), rows)


def _request(text: str) -> Any:
    front = read_yaml(text, path=_HERE)
    return read_request(Skill("demo", "demo", "", Path("/demo"), Path("/demo"), None, _HERE, front, (), ()))


def path_rules() -> str:
    """Show what is a path and what is an error, with the words of the error."""
    samples = (
        *("./data", "data/", "/etc/hosts", "~/notes", "${workspace}/out", "${skill}/assets", "${scratch}"),
        *("../shared", "", "~", "~root/x", "$HOME/x", "a/${skill}", "data/*.csv", "{a,b}", "a\tb"),
    )
    rows = []
    for text in samples:
        fault = path_fault(text)
        rows.append(
            (code(text) if text else "(empty)", "ok" if fault is None else f"error: {fault[0]}; {fault[1]}")
        )
    return grid(("path", ""), rows)


def host_rules() -> str:
    """Show what is a host rule, in its normal form, and what is an error."""
    samples = (
        *(
            "api.example.com",
            "API.example.com.",
            "api.example.com:8443",
            "localhost:8000-8010",
            "*.example.org",
        ),
        *(
            "127.0.0.1:5432",
            "[::1]:8080",
            "*",
            "*.org",
            "*.github.io",
            "https://example.com",
            "127.1",
            "bücher.de",
        ),
    )
    return grid(("host", ""), ((code(text), _host(text)) for text in samples))


def _host(text: str) -> str:
    try:
        return f"means {code(Endpoint.parse(text))}"
    except ValueError as wrong:
        return f"error: {wrong}"


def front_matter_errors() -> str:
    """Show each way to write a front matter that is not read, with its rule and message."""
    samples = (
        ("no `---` at the top", b"# Title\n"),
        ("the file is empty", b""),
        ("a blank line above", b"\n---\nname: a\n---\n"),
        ("a comment above", b"<!-- x -->\n---\nname: a\n---\n"),
        ("`----` for `---`", b"----\nname: a\n---\n"),
        ("no closing `---`", b"---\nname: a\n"),
        ("not YAML", b"---\nname: [a\n---\n"),
        ("a key twice", b"---\nname: a\nname: b\n---\n"),
        ("a tag", b"---\nname: !!str a\n---\n"),
        ("an alias without anchor", b"---\nname: *a\n---\n"),
        ("a list as a key", b"---\n? [a]\n: b\n---\n"),
        ("no map", b"---\n- a\n---\n"),
        ("a control character", b'---\nname: "a\x07"\n---\n'),
        ("not UTF-8", b"---\nname: \xff\n---\n"),
        ("more than 1 MiB", b"---\n" + b"#" * (1 << 20) + b"\n---\n"),
        ("very deep", b"---\na: " + b"[" * 70 + b"]" * 70 + b"\n---\n"),
    )
    found = ((what, _refused(what, data)) for what, data in samples)
    return grid(("what", "rule", "message"), ((what, code(p.rule), p.message) for what, p in found))


def _refused(what: str, data: bytes) -> Problem:
    try:
        read_front_matter(data, path=_HERE)
    except SkillError as wrong:
        return wrong.problem
    raise SystemExit(f"error: docs/tables.py: {what} is read after all")


def request_errors() -> str:
    """Show common mistakes in a request, with rule, message and advice."""
    samples = (
        "network: 'yes'",
        "timeout: 30s",
        "fs_read: ./a, ./b",
        "fs_write: {path: out}",
        "fs_read: ['*.csv']",
        "trust: full",
        "fs_reads: [data]",
        "skillrun: {fs_read: [data]}",
        "metadata: {skillrun: {memory: 1GiB}}",
        "{timeout: 5, metadata: {skillrun: {timeout: 5}}}",
        "env: [TZ]",
        "permissions: {fs_read: [data]}",
    )
    rows = []
    for text in samples:
        problem = _request(text).problems[0]
        rows.append(
            (
                code(text),
                f"{problem.severity.value} {code(problem.rule)}",
                f"{problem.message}; {problem.help}",
            )
        )
    return grid(("written", "", "message"), rows)


def config_keys() -> str:
    """List the keys of a skillrun.yaml with who may write each, found out by reading one for each role."""
    known = keys.config(LAYER_KEYS)
    roles = (Role.OPERATOR, Role.NAMED, Role.MACHINE, Role.PROJECT)
    rows = []
    for key in TOP_KEYS:
        who = ["yes" if _may(key, role) else "error" for role in roles]
        rows.append((code(key), known[key].type, known[key].meaning, *who))
    return grid(
        ("key", "type", "meaning", "your own file", "`--ceiling` file", "machine file", "project file"), rows
    )


def _may(key: str, role: Role) -> bool:
    empty = "[]" if key in {"trusted", "workspaces"} else "{}"
    try:
        config_from_node(read_yaml(f"{key}: {empty}", path=_HERE), role, Path("/project"))
    except ConfigError:
        return False
    return True


def ceiling_keys() -> str:
    """List the keys of a ceiling with the value of preset `default`."""
    default = read_preset("default").sandbox
    assert default is not None  # noqa: S101 - shipped with a sandbox
    values: dict[str, list[str]] = {}
    for line in describe_ceiling("", default):
        key, _, limit = line.key.partition(".")
        values.setdefault(key, []).append(f"{limit} {_shown(limit, line.value)}".strip())
    rows = [
        (code(key), keys.CEILING[key].type, keys.CEILING[key].meaning, ", ".join(values[key]))
        for key in CEILING_KEYS
    ]
    return grid(("key", "type", "meaning", "in `default`"), rows)


def _shown(limit: str, value: object) -> str:
    """Write a value of a ceiling as a person would."""
    if limit and limit != "processes":
        return size(float(str(value)))
    return "nothing" if value is None else code(str(value).lower())


def ceiling_presence() -> str:
    """Tell absent, null and empty apart for each key of a ceiling at each layer, by running them."""
    layers = (*presence.BASES, *presence.NARROWING)
    return grid(("key", "written", *layers), presence.ceiling_rows())


def ceiling_errors() -> str:
    """Show common mistakes in a skillrun.yaml, with rule, message and advice."""
    samples = (
        "fs_read: ['${workspace}']",
        "sandbox: {fs_reed: []}",
        "sandbox:",
        "sandbox: {timeout: null}",
        "sandbox: {network: 'true'}",
        "sandbox: {fs_read: [data]}",
        "sandbox: {deny: ['**/.env']}",
        "sandbox: {deny: ['../x']}",
        "sandbox: {limits: {ram: 1GiB}}",
        "floor: {enabled: true}",
        "trusted: [{skill: ~/skills/x}]",
        "skills: {demo: {requests: {}}}",
    )
    found = ((text, _mistake(text)) for text in samples)
    rows = ((code(text), code(p.rule), f"{p.message}; {p.help}") for text, p in found)
    return grid(("in your own file", "rule", "message"), rows)


def _mistake(text: str) -> Problem:
    try:
        config_from_node(read_yaml(text, path=_HERE), Role.OPERATOR, Relative.FORBIDDEN)
    except ConfigError as wrong:
        return wrong.problem
    raise SystemExit(f"error: docs/tables.py: `{text}` is read after all")


def presets() -> str:
    """Show each preset: what it is for, each value, and why."""
    return "\n\n".join(_preset(name) for name in ("default", *(n for n in preset_names() if n != "default")))


def _preset(name: str) -> str:
    lines = (folder("profiles") / "ceilings" / f"{name}.yaml").read_text().splitlines()
    about = lines[0].removeprefix("# ").partition(": ")[2]
    rows, why, above = [], [], ""
    for line in lines[2:]:
        text = line.strip()
        if text.startswith("# "):
            why.append(text.removeprefix("# "))
            continue
        key, _, value = text.partition(": ")
        if value:
            rows.append(
                (code(f"{above}{key}" if line.startswith("    ") else key), code(value), " ".join(why))
            )
        else:
            above = f"{key.removesuffix(':')}."
        why = []
    # What a preset leaves out is `default`'s; both are read by the same code as everybody's file.
    return f"### {name}\n\n{about[:1].upper()}{about[1:]}\n\n" + grid(("key", "value", "why"), rows)


def env_refused() -> str:
    """List the variables that are never passed."""
    return grid(
        ("names", "because"), ((listed(group["names"]), group["reason"]) for group in table("env")["refused"])
    )


def env_always() -> str:
    """List the variables of every run, by making the environment of one."""
    caller = {"LANG": "(yours, else C.UTF-8)", "USER": "(yours)"}
    caller |= dict.fromkeys(sorted(always_passed() - {"LANG"}), "(yours, if you have it)")
    place = Place(Path("(workspace)"), Path("(skill folder)"), Path("(scratch)"), None, caller)
    grant = Grant(Capabilities(frozenset(), frozenset(), limits=Limits()))
    given = dict(environment(grant, place, None, programs=Path("(a folder with `python` and `python3`)"))) | {
        "LANG": caller["LANG"]
    }
    given["PATH"] = "(the interpreter's folder):" + given["PATH"]
    return grid(("variable", "value"), ((code(name), code(value)) for name, value in given.items()))


def secrets() -> str:
    """List the names that usually hold secrets."""
    groups = table("secrets")["secrets"]
    return grid(("names", "because"), ((listed(group["names"]), group["reason"]) for group in groups))


def protected() -> str:
    """List the names that a script may read and never change."""
    return grid(
        ("name", "because"), ((code(line["name"]), line["why"]) for line in table("protected")["names"])
    )


def quarantined() -> str:
    """List the names that are moved away when a run made them."""
    return listed(line["name"] for line in table("protected")["names"] if line.get("quarantine"))


def git_commands() -> str:
    """List the keys of a git config that run commands."""
    found = table("protected")
    rows = [(code(line["key"]), line["why"]) for line in found["git_commands"]]
    sections = f"Every key in these sections as well: {listed(found['git_command_sections'])}."
    return f"{grid(('key', 'because'), rows)}\n\n{sections}"


def suffixes() -> str:
    """List the domains below which a star is refused."""
    return listed(table("suffixes")["shared"])


def system_paths() -> str:
    """List what every run on Linux may read."""
    rows = [
        (code(line["path"]), "with a network" if line.get("when") == "network" else "always", line["why"])
        for line in table("linux/system")["read"]
    ]
    return grid(("path", "when", "because"), rows)


def devices() -> str:
    """List the devices of every run on Linux."""
    return grid(("device", "because"), ((code(d["path"]), d["why"]) for d in table("linux/system")["device"]))


def interpreters() -> str:
    """List what runs a script without an interpreter line, and the kinds that `interpreters` takes."""
    runtime = table("runtime/interpreters")
    rows = [(code(end), code(" ".join(e["run"])), e["reason"]) for end, e in runtime["extensions"].items()]
    kinds = [
        (code(kind), code(family["names"]), family["reason"]) for kind, family in runtime["families"].items()
    ]
    return (
        f"{grid(('ending', 'run by', 'because'), rows)}\n\nThe kinds, which `interpreters` of a skillrun.yaml takes:\n\n"
        + grid(("kind", "names of programs", ""), kinds)
    )


def filter_rules() -> str:
    """List what the system-call filter answers, when, and why."""
    rows = []
    for rule in table("linux/seccomp"):
        answer = "0, and does nothing" if rule["answer"] == "ok" else code(rule["answer"])
        rows.append((listed(rule["calls"]), answer, _when(rule) or "always", rule["why"]))
    return grid(("calls", "answer", "when", "because"), rows)


def _when(rule: dict[str, Any]) -> str:
    parts = [f"level {level}" for level in rule.get("levels", ())]
    parts += {"none": ["no network granted"], "any": ["a network granted"]}.get(rule.get("network", ""), [])
    if "signals" in rule:
        parts.append("Landlock ABI below 6")
    if "unix" in rule:
        parts.append("a granted folder was too large to look for sockets")
    return "; ".join([*parts, *(_condition(condition) for condition in rule.get("when", ()))])


def _condition(condition: dict[str, Any]) -> str:
    name = f"argument {condition['arg']}"
    if "and" in condition:
        name += f" & {condition['and']:#x}"
    if "bits" in condition:
        return f"{name} has a bit of `{condition['bits']:#x}`"
    word, values = ("is", condition["in"]) if "in" in condition else ("is not", condition["not_in"])
    return f"{name} {word} " + " or ".join(f"`{value:#x}`" for value in values)


def level1_calls() -> str:
    """List the calls that level 1 answers differently from level 2."""
    rows = []
    for rule in table("linux/seccomp"):
        if rule.get("levels") == [1]:
            lie = rule["answer"] == "ok"
            answer = "reports success and does nothing" if lie else f"fails with {code(rule['answer'])}"
            rows.append(
                (listed(rule["calls"]), answer, _when(rule | {"levels": ()}) or "always", rule["why"])
            )
    return grid(("calls", "at level 1", "when", "because"), rows)


def guarantees() -> str:
    """Say how far each guarantee holds for each way of running, by asking the backends."""
    ways: dict[str, tuple[Backend, Probe]] = {
        "`linux` level 2": (Linux(2), Probe("linux", "x86_64", landlock=7, seccomp=True, level2=True)),
        "`linux` level 1, Landlock ABI 6 or newer": (
            Linux(1),
            Probe("linux", "x86_64", landlock=6, seccomp=True),
        ),
        "`linux` level 1, Landlock ABI 3 to 5": (
            Linux(1),
            Probe("linux", "x86_64", landlock=5, seccomp=True),
        ),
        "`seatbelt`": (Seatbelt(), Probe("darwin", "arm64")),
        "`passthrough`": (Passthrough(), Probe("linux", "x86_64")),
    }
    answers = []
    for backend, probe in ways.values():
        without, given = (
            dict(backend.guarantees(_policy(network=net), probe).items()) for net in (False, True)
        )
        answers.append({name: _state(state, given[name]) for name, state in without.items()})
    return grid(
        ("guarantee", *ways), ((code(name), *(answer[name] for answer in answers)) for name in answers[0])
    )


def _state(without: State, given: State) -> str:
    return (
        without.value if without is given else f"{without.value}; {given.value} where a network was granted"
    )


def _policy(*, network: bool) -> Policy:
    """Make a policy that grants nothing, or the network alone."""
    nothing = Path("/nowhere")
    fields: dict[str, Any] = dict.fromkeys(("skill", "workspace", "scratch", "cwd", "script"), nothing)
    return Policy(
        **fields,
        argv=(),
        environ=(),
        script_identity=FileIdentity(0, 0, 0, 0, ""),
        interpreter=None,
        rules=(),
        kept=(),
        links=(),
        network=network,
        searched=True,
        timeout=1,
        limits=Limits(),
        require=Requirement.NONE,
        unconfined=None,
    )


def workspaces() -> str:
    """Show which folders can't be a workspace, by asking."""
    with tempfile.TemporaryDirectory() as made:
        home = Path(made).resolve() / "home"
        (home / "project").mkdir(parents=True)
        own = {
            "your home folder": home,
            "a folder above it": home.parent,
            "a folder in it": home / "project",
            "a folder that is not there": home / "missing",
        }
        rows = [(name, _workspace(path, home)) for name, path in own.items()]
        rows += [(code(path), _workspace(Path(path), None)) for path in ("/", "/tmp", "/usr", "/etc")]  # noqa: S108 - paths to ask about
        return grid(("folder", ""), rows)


def _workspace(path: Path, home: Path | None) -> str:
    try:
        check_workspace(path, home=home)
    except UsageError as wrong:
        _, refused, reason = wrong.problem.message.partition(": it is ")
        return f"refused, {code(wrong.problem.rule)}" + (f": it is {reason}" if refused else "")
    return "ok"


def exit_codes() -> str:
    """List the exit codes of `skillrun run` that are not the script's own."""
    rows = [
        ("124", "the script was stopped at its deadline"),
        (
            "125",
            "nothing was started: refused, a mistake in the call or in a file, or the sandbox could not be set up",
        ),
    ]
    reasons: dict[int, list[str]] = {}
    for rule, number in EXIT_OF_RULE.items():
        reasons.setdefault(number, []).append(rule)
    words = {126: "it can't be executed", 127: "its interpreter was not found"}
    rows += [(str(number), f"{words[number]} ({listed(rules)})") for number, rules in sorted(reasons.items())]
    rows += [
        ("128 + n", "the script was killed by signal n; 137 also when it used too much memory"),
        ("130, 143", "skillrun itself was stopped by Ctrl-C or by TERM"),
    ]
    return grid(("exit code", "meaning"), rows)


PARTS: Final[dict[str, Callable[[], str]]] = {
    function.__name__.replace("_", "-"): function
    for function in (
        *(
            request_keys,
            request_presence,
            limit_keys,
            string_form,
            path_rules,
            host_rules,
            front_matter_errors,
        ),
        *(request_errors, config_keys, ceiling_keys, ceiling_presence, ceiling_errors, presets, env_refused),
        *(env_always, secrets, protected, quarantined, git_commands, suffixes, system_paths, devices),
        *(seatbelt_parts.seatbelt_profile, seatbelt_parts.audit_rules),
        *(interpreters, filter_rules, level1_calls, guarantees, workspaces, exit_codes, check_rules),
    )
}
