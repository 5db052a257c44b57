"""The profile that skillrun writes: what it allows, in which order, with which reasons, and what can't get into it."""

from __future__ import annotations

import random
import re
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2
import pytest
from made import SCRATCH, SKILL, evaluator, policy

from skillrun import resources
from skillrun.errors import ConfigError
from skillrun.permissions.grant import Requirement
from skillrun.sandbox.backend import Probe
from skillrun.sandbox.landscape import Spot
from skillrun.sandbox.seatbelt import render as rendering
from skillrun.sandbox.seatbelt.arrange import MOST_BYTES, protected_names, secret_names
from skillrun.sandbox.seatbelt.backend import Seatbelt
from skillrun.sandbox.seatbelt.evaluate import Tier
from skillrun.sandbox.seatbelt.parse import parse
from skillrun.sandbox.seatbelt.regexes import folded
from skillrun.sandbox.seatbelt.render import render
from skillrun.sandbox.seatbelt.source import Source
from skillrun.sandbox.seatbelt.syntax import Kind, read

if TYPE_CHECKING:
    from skillrun.sandbox.landscape import Landscape

WORK = "/Users/u/work"
HOSTILE = [
    'a") (allow default) (subpath "',
    "a\\",
    'a\\") (allow default)',
    "a(b)c",
    "a\nb",
    "a;b",
    "#|a|#",
    '#"a',
    "é漢字😀",
    "a b\tc",
    "'(a)",
    "{{ 1 }}{% raw %}",
    "${HOME}",
    "a=b",
    "[a].*^$+?|",
    "x" * 255,
]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_decided_right(name: str) -> None:
    """C-01: whatever a folder is called, exactly that folder is granted, and its name is in no text."""
    made = policy(read=[f"{WORK}/{name}"], write=[f"{WORK}/out {name}"], denied=[f"{WORK}/{name}/no {name}"])
    asked = evaluator(made)
    text = render(*made).text

    assert text == render(*policy(read=["/a"], write=["/b"], denied=["/a/c"])).text
    assert asked.decide("file-read-data", f"{WORK}/{name}/x").allowed
    assert asked.decide("file-write-create", f"{WORK}/out {name}/x").allowed
    assert not asked.decide("file-write-create", f"{WORK}/{name}/x").allowed
    assert not asked.decide("file-read-data", f"{WORK}/{name}/no {name}/x").allowed
    for other in ("/etc/passwd", "/Users/u/.ssh/id", f"{WORK}/{name}x", WORK, "/"):
        assert not asked.decide("file-write-data", other).allowed
        assert other == "/" or not asked.decide("file-read-data", other).allowed


def test_random_hostile_names() -> None:
    """The same for names of random characters, up to four thousand of them."""
    rng = random.Random(7)
    for _ in range(25):
        name = "n" + "".join(
            rng.choice("\"\\()'#;\n\t {}%$é=ab.[]^*|") for _ in range(rng.choice((2, 5, 30, 4000)))
        )
        asked = evaluator(policy(write=[f"{WORK}/{name}"], denied=[f"{WORK}/{name}/d{name[:100]}"]))
        assert asked.decide("file-write-data", f"{WORK}/{name}/f").allowed, name
        assert not asked.decide("file-write-data", f"{WORK}/f").allowed, name
        assert not asked.decide("file-read-data", f"{WORK}/{name}/d{name[:100]}/f").allowed, name
        assert not asked.decide("file-read-data", "/etc/master.passwd").allowed, name


@pytest.mark.parametrize("name", ["\udcff", "x" * 9000])
def test_names_that_cannot_be_told_are_refused(name: str) -> None:
    """A path that is not UTF-8, or longer than any Mac takes, is an error and no profile."""
    with pytest.raises(ConfigError) as caught:
        render(*policy(read=[f"{WORK}/{name}"]))
    assert caught.value.problem.rule == "path-unspeakable"


def test_nobody_forgets_a_name() -> None:
    """A name that the template asks for and nobody fills in is an error, not an empty text."""
    with pytest.raises(jinja2.UndefinedError):
        rendering._template().render()


def test_only_parameters_and_shipped_lists_are_in_the_text() -> None:
    """Every string of a profile is a shipped one or the name of a parameter."""
    shipped = "".join(
        path.read_text() for path in sorted((resources.folder("profiles") / "seatbelt").iterdir())
    )
    made = policy(read=["/r"], write=["/w"], denied=["/w/d"], protected=["/w/p"], links=["/l"], network=True)
    rendered = render(*made)
    names = dict(rendered.parameters)
    strings, pending = set(), list(read(Source(rendered.text)))
    while pending:
        node = pending.pop()
        pending += node.items
        if node.kind is Kind.TEXT:
            strings.add(str(node.value))
    patterns = {f"/{folded(name)}($|/)" for name in protected_names() | secret_names()}
    parents = {string for string in strings if string.startswith("/[") and string.endswith("$")}
    sysctls = {line["name"] for line in resources.table("seatbelt/sysctl")["names"]}
    for string in strings - set(names) - patterns - parents:
        assert f'"{string}"' in shipped or string in sysctls, string
    assert not {"/r", "/w", "/w/d", "/w/p", "/l"} & strings
    assert len(strings & set(names)) > 5


def test_the_order_of_a_configuration_does_not_matter() -> None:
    """C-15: the same paths in any order give the same bytes, and what is denied stays denied."""
    rng = random.Random(3)
    read = [f"{WORK}/a", f"{WORK}/a/b", "/Users/u/x", "/opt/data"]
    write = [f"{WORK}/out", f"{WORK}/a/b/w", SKILL]
    denied = [f"{WORK}/a/b/.env", "/Users/u/x/.env", f"{WORK}/out/deep/no"]
    first = render(*policy(read=read, write=write, denied=denied, protected=[f"{SKILL}/SKILL.md"]))
    for _ in range(10):
        for paths in (read, write, denied):
            rng.shuffle(paths)
        made = policy(read=read, write=write, denied=denied, protected=[f"{SKILL}/SKILL.md"])
        assert render(*made) == first
    asked = evaluator(made)
    assert not asked.decide("file-write-data", f"{SKILL}/SKILL.md").allowed
    assert asked.decide("file-read-data", f"{SKILL}/SKILL.md").allowed
    assert not asked.decide("file-read-data", "/Users/u/x/.env").allowed
    assert not asked.decide("file-write-create", f"{WORK}/out/deep/no/x").allowed


def test_a_denial_holds_on_every_operation() -> None:
    """No operation that the profile ever allows by name gets around a denial, and none moves it out of the way."""
    asked = evaluator(
        policy(read=["/r"], write=["/w"], denied=["/w/a/no", "/r/no"], protected=["/w/b/kept"], network=True)
    )
    named = {operation for rule in asked.profile.rules if rule.allow for operation in rule.operations}
    # A lock is taken on what is open already, and none of these can be opened.
    about_paths = {one for one in named if one.startswith(("file", "process-exec", "network"))} - {
        "file-lock"
    }
    assert {"file-write-unlink", "file-read-metadata", "process-exec*", "network-outbound"} <= about_paths
    for operation in sorted(about_paths):
        target = "unix:/w/a/no/x" if operation.startswith("network") else "/w/a/no/x"
        assert not asked.decide(operation, target).allowed, operation
        assert (
            not asked.decide(operation, target.replace("/x", "")).allowed
            or operation == "file-test-existence"
        ), operation
        if operation.startswith(("file-write", "file-link")):
            assert not asked.decide(operation, "/w/b/kept").allowed, operation
    for folder in ("/w", "/w/a", "/w/b", "/w/b/kept"):
        assert not asked.decide("file-write-unlink", folder).allowed, f"{folder} could be renamed"
    assert asked.decide("file-write-unlink", "/w/a/yes").allowed


@pytest.mark.parametrize(
    "spelled", ["/w/.SSH", "/w/.Ssh/id", "/W/.ssh/id", "/w/.gIt/HOOKS/post-commit", "/w/Denied"]
)
def test_other_letters_are_no_way_around(spelled: str) -> None:
    """C-12: most volumes of a Mac take `.SSH` for `.ssh`, so what is kept is kept in either case."""
    denied = [f"/w/{name}" for name in secret_names()] + ["/w/denied"]
    protected = [f"/w/{name}" for name in protected_names()]
    asked = evaluator(policy(write=["/w"], denied=denied, protected=protected))

    assert not asked.decide("file-write-create", spelled).allowed
    assert asked.decide("file-write-create", "/w/sshx").allowed
    assert asked.decide("file-write-create", "/w/.git/index").allowed


@pytest.mark.parametrize(
    "spelled", ["/w/caf\u00e9", "/w/cafe\u0301/x", "/w/CAF\u00c9/x", "/w/Cafe\u0301", "/w/STRASSE/\u00c4"]
)
def test_other_spellings_are_no_way_around(spelled: str) -> None:
    """C-12: the same name composed and decomposed, in either case, also when it is not there yet."""
    for form in ("NFC", "NFD"):
        denied = [unicodedata.normalize(form, path) for path in ("/w/caf\u00e9", "/w/stra\u00dfe")]
        asked = evaluator(policy(write=["/w"], denied=denied))
        assert not asked.decide("file-write-create", spelled).allowed, form
        assert asked.decide("file-write-create", "/w/cafe").allowed


@pytest.mark.parametrize(
    ("prefixes", "links", "runs", "loads"),
    [
        (("/opt/homebrew/Cellar", "/opt/homebrew/opt", "/opt/homebrew/lib"), ("/opt/homebrew/bin/python3",),
         "/opt/homebrew/Cellar/python@3.12/3.12.1/Frameworks/Python.framework/Versions/3.12/bin/python3.12",
         "/opt/homebrew/Cellar/openssl@3/3.2.0/lib/libssl.3.dylib"),
        (("/Users/u/.pyenv/versions/3.12.1",), ("/Users/u/v/bin/python",),
         "/Users/u/.pyenv/versions/3.12.1/bin/python3.12", "/Users/u/.pyenv/versions/3.12.1/lib/libpython3.12.dylib"),
        (("/Users/u/.local/share/uv/python/cpython-3.12.13-macos-aarch64-none", "/Users/u/v"),
         ("/Users/u/v/bin/python", "/Users/u/.local/share/uv/python/cpython-3.12"),
         "/Users/u/.local/share/uv/python/cpython-3.12.13-macos-aarch64-none/bin/python3.12",
         "/Users/u/v/lib/python3.12/site-packages/numpy/core.so"),
        (("/Users/u/.nvm/versions/node/v22.1.0",), (), "/Users/u/.nvm/versions/node/v22.1.0/bin/node",
         "/Users/u/.nvm/versions/node/v22.1.0/lib/node_modules/x.node"),
        ((), (), "/usr/bin/perl", "/System/Library/Perl/Extras/5.34/x.bundle"),
        ((), (), "/usr/bin/ruby", "/Library/Ruby/Gems/2.6.0/x.bundle"),
        ((), (), "/bin/bash", "/usr/lib/system/libsystem_c.dylib"),
    ],
    ids=["homebrew", "pyenv", "uv", "nvm", "perl", "ruby", "bash"],
)  # fmt: skip
def test_interpreters_where_they_are_installed(
    prefixes: tuple[str, ...], links: tuple[str, ...], runs: str, loads: str
) -> None:
    """C-03: each layout's interpreter may be executed, its libraries loaded, each link on the way looked up."""
    asked = evaluator(policy(read=prefixes, links=links))
    for operation, path in (
        *(("file-read-metadata", link) for link in links),
        ("process-exec*", runs),
        ("file-read-data", runs),
        ("file-map-executable", loads),
        ("file-read-data", loads),
    ):
        assert asked.decide(operation, path).allowed, (operation, path)
    for above in Path(runs).parents:
        assert asked.decide("file-read-metadata", str(above)).allowed, above
    assert not asked.decide("file-read-data", "/Users/u/.pyenv/version").allowed
    assert not asked.decide("file-write-data", loads).allowed


def test_places_with_all_names_are_one_parameter() -> None:
    """A hundred protected names of a write root, and of a repository below it, are not a hundred parameters each."""
    places = ("/w", "/w/deep/repository")
    protected = [f"{place}/{name}" for place in places for name in protected_names()]
    denied = [f"/w/{name}" for name in secret_names()]
    # As `complete` does it: a name that is secret and protected is hidden, and stands in that list only.
    protected = [path for path in protected if path not in denied]
    made = policy(write=["/w"], denied=[*denied, "/w/more"], protected=[*protected, "/w/one"])
    values = dict(render(*made).parameters)

    assert sorted(value for name, value in values.items() if name.startswith("PLACE")) == sorted(places)
    assert [value for name, value in values.items() if name.startswith("SECRETS_OF")] == ["/w"]
    assert len(values) < 20
    asked = evaluator(made)
    for name in protected_names():
        for place in places:
            assert not asked.decide("file-write-create", f"{place}/{name}").allowed
            assert not asked.decide("file-write-unlink", f"{place}/{name.split('/')[0]}").allowed
    # One name less, because the operator named that very path, and the others are still kept.
    fewer = [path for path in denied if path != "/w/.env"]
    asked = evaluator(policy(write=["/w"], denied=fewer))
    assert asked.decide("file-read-data", "/w/.env").allowed
    assert not any(asked.decide("file-read-data", path).allowed for path in fewer)


def test_what_lies_in_something_kept_stays_as_it_is() -> None:
    """A write grant in a protected folder, or of one, gives nothing to write; reading is as it was granted."""
    for root in ("/w/.git/hooks/deep/x", "/w/.git/hooks"):
        asked = evaluator(policy(write=[root], protected=["/w/.git/hooks"]))
        assert not asked.decide("file-write-create", f"{root}/y").allowed
        assert asked.decide("file-read-data", f"{root}/y").allowed
    beside = evaluator(policy(write=["/w/.git/hooks2"], protected=["/w/.git/hooks"]))
    assert beside.decide("file-write-create", "/w/.git/hooks2/y").allowed


def test_nested_paths_are_collapsed() -> None:
    """A path inside another one that is granted as much takes no rule of its own."""
    values = dict(
        render(*policy(read=["/a", "/a/b", "/ab", "/w/in", f"{SKILL}/x"], write=["/w", "/w/out"])).parameters
    )

    assert [v for n, v in values.items() if n.startswith("READ")] == [SKILL, "/a", "/ab", "/w"]
    assert [v for n, v in values.items() if n.startswith("WRITE")] == ["/w"]


def test_no_rule_is_too_large() -> None:
    """However many and long the paths are, no rule's patterns come near what the compiler takes."""
    long = "/".join(["x" * 200] * 5)
    many = [f"/Users/u/{number:03}/{long}" for number in range(40)]
    protected = [f"{place}/{name}" for place in many[:3] for name in protected_names()]
    made = policy(
        read=many[10:], write=many[:10], denied=[f"{path}/no" for path in many], protected=protected
    )
    asked = evaluator(made)
    for rule in asked.profile.rules:
        filters, size = list(rule.filters), 0
        while filters:
            one = filters.pop()
            filters += one.children
            size += sum(len(str(argument)) + 8 for argument in one.arguments)
        # Ancestors of a path are literals of their own: at most one for each of its components.
        assert size < 64_000, rule
        assert size < 4 * MOST_BYTES or any(f.name == "literal" for f in rule.filters)
    assert not asked.decide("file-read-data", f"{many[39]}/no").allowed
    assert asked.decide("file-read-data", f"{many[39]}/yes").allowed


def test_a_file_is_a_literal() -> None:
    """C-16: granting `conf.json` grants neither `conf.json.bak` nor anything below; denied ones are kept both ways."""
    asked = evaluator(
        policy(
            read=[f"{WORK}/conf.json", "/Users/u"], files=[f"{WORK}/conf.json"], denied=["/Users/u/.netrc"]
        )
    )
    lone = evaluator(policy(read=[f"{WORK}/conf.json"], files=[f"{WORK}/conf.json"]))

    assert lone.decide("file-read-data", f"{WORK}/conf.json").allowed
    assert not lone.decide("file-read-data", f"{WORK}/conf.json.bak").allowed
    assert not lone.decide("file-read-data", f"{WORK}/conf.json/x").allowed
    assert not asked.decide("file-read-data", "/Users/u/.netrc").allowed
    assert not asked.decide("file-read-data", "/Users/u/.netrc/x").allowed
    assert asked.decide("file-read-data", "/Users/u/.netrc2").allowed


def test_links_and_parents_can_be_looked_up() -> None:
    """C-02, C-03, C-04: each link on a way is readable, each folder above can be looked up and not listed."""
    hops = ["/Users/u/v/bin/python", "/Users/u/.local/share/uv/python/cpython-3.12"]
    asked = evaluator(
        policy(read=["/Users/u/.local/share/uv/python/cpython-3.12.13", f"{WORK}/skill/data"], links=hops)
    )

    for hop in hops:
        assert asked.decide("file-read-metadata", hop).allowed
        assert asked.decide("file-read-data", hop).allowed
        assert not asked.decide("file-read-data", f"{hop}2").allowed
    for link in ("/tmp", "/var", "/etc"):
        assert asked.decide("file-read-metadata", link).allowed
        assert not asked.decide("file-read-data", f"{link}/x").allowed
    for above in ("/", "/Users", "/Users/u", WORK, f"{WORK}/skill", "/Users/u/v", "/private", "/private/tmp"):
        assert asked.decide("file-read-metadata", above).allowed, above
        assert above == "/" or not asked.decide("file-read-data", above).allowed, above
        assert not asked.decide("file-read-metadata", f"{above.rstrip('/')}/stranger").allowed, above


@pytest.mark.parametrize("network", [False, True])
def test_network_only_when_granted(network: bool) -> None:  # noqa: FBT001 - both cases
    """C-19, C-22, C-23: with a network addresses, names and certificates; without it none of them; never inbound."""
    asked = evaluator(policy(network=network, write=["/w"]))
    for operation, target in (
        ("network-outbound", "tcp://93.184.216.34:443"),
        ("network-outbound", "udp://8.8.8.8:53"),
        ("network-outbound", "unix:/private/var/run/mDNSResponder"),
        ("mach-lookup", "com.apple.trustd"),
        ("mach-lookup", "com.apple.trustd.agent"),
        ("mach-lookup", "com.apple.SystemConfiguration.DNSConfiguration"),
        ("mach-lookup", "com.apple.dnssd.service"),
        ("file-read-data", "/private/etc/resolv.conf"),
        ("system-socket", "AF_ROUTE"),
    ):
        assert asked.decide(operation, target).allowed is network, (operation, target)
    for operation, target in (
        ("network-outbound", "unix:/private/var/run/docker.sock"),
        ("network-outbound", "unix:/w/agent.sock"),
        ("network-bind", "tcp://0.0.0.0:8080"),
        ("network-inbound", "tcp://127.0.0.1:8080"),
        ("network-bind", "unix:/w/agent.sock"),
        ("system-socket", "AF_INET"),
    ):
        assert not asked.decide(operation, target).allowed, (operation, target)


def test_what_deny_default_does_not_cover_is_denied_by_name() -> None:
    """Operations with an answer of their own are denied in the text, so that none of them rests on a built-in."""
    asked = evaluator(policy(write=["/w"], network=True))
    for operation, target in (
        ("process-info-pidinfo", "others"),
        ("process-info-codesignature", "others"),
        ("sysctl-read", "kern.procargs2"),
        ("sysctl-write", "hw.ncpu"),
        ("file-map-executable", "/Users/u/evil.dylib"),
        ("file-link", "/Users/u/.ssh/id"),
        ("file-clone", "/Users/u/.ssh/id"),
        ("file-test-existence", "/Users/u/.ssh"),
        ("file-write-setugid", "/w/x"),
        ("nvram-get", "boot-args"),
        ("iokit-get-properties", "IOPlatformSerialNumber"),
        ("iokit-open", "RootDomainUserClient"),
        ("darwin-notification-post", "x"),
        ("mach-lookup", "com.apple.SecurityServer"),
        ("mach-lookup", "com.apple.coreservices.launchservicesd"),
        ("mach-lookup", "com.apple.pasteboard.1"),
        ("mach-register", "x"),
        ("appleevent-send", "com.apple.finder"),
        ("lsopen", "x"),
        ("signal", "others"),
        ("job-creation", "x"),
        ("pseudo-tty", ""),
        ("ipc-posix-shm-read-data", "apple.shm.notification_center"),
        ("ipc-sysv-shm", "1"),
        ("user-preference-read", "com.apple.x"),
    ):
        decision = asked.decide(operation, target)
        assert not decision.allowed, operation
        assert decision.certain, (operation, decision.doubts)
        assert decision.rule is not None, operation
        assert decision.tier is not Tier.BUILT_IN, operation


@pytest.mark.parametrize(
    ("operation", "target", "given"),
    [
        ("process-fork", "", {}),
        ("process-exec*", "/bin/sh", {}),
        ("process-exec*", "/usr/bin/env", {}),
        ("file-map-executable", "/usr/lib/dyld", {}),
        ("file-read-data", "/", {}),
        ("file-read-data", "/usr/share/zoneinfo/UTC", {}),
        ("file-read-data", "/private/var/select/sh", {}),
        ("file-write-data", "/dev/null", {"vnode-type": "CHARACTER-DEVICE"}),
        ("file-read-data", "/dev/urandom", {}),
        ("file-read-data", "/dev/fd/63", {}),
        ("signal", "same-sandbox", {}),
        ("signal", "self", {}),
        ("process-info-pidinfo", "self", {}),
        ("sysctl-read", "hw.ncpu", {}),
        ("sysctl-read", "kern.sysv.semmni", {}),
        ("ipc-posix-sem-create", "/mp-abcd1234", {}),
        ("ipc-posix-shm-write-create", "/psm_1a2b", {}),
        ("mach-lookup", "com.apple.system.opendirectoryd.libinfo", {}),
        ("file-read-data", "/System/Library/Perl/5.34/strict.pm", {}),
        ("process-exec*", f"{SKILL}/scripts/main.py", {}),
        ("file-read-metadata", WORK, {}),
        ("file-lock", f"{SCRATCH}/x", {}),
        ("file-write-create", f"{SCRATCH}/x", {}),
        ("file-write-unlink", f"{SCRATCH}/x", {}),
        ("file-read-data", f"{SCRATCH}/x", {}),
        ("process-exec*", f"{SCRATCH}/x", {}),
        ("file-read-metadata", "/private/tmp/skillrun-501/skillrun-a/runs", {}),
    ],
)
def test_what_scripts_need(operation: str, target: str, given: dict[str, str]) -> None:
    """C-24, C-26: what bash, Python, node, ruby and perl ask when they start, and the run's own scratch."""
    assert evaluator(policy()).decide(operation, target, given).allowed


def test_scratch_of_other_runs_is_out_of_reach() -> None:
    """The folder that holds the run's own scratch is kept from it."""
    asked = evaluator(policy(write=["/private/tmp"], protected=["/private/tmp"]))
    for path in ("/private/tmp/skillrun-501/x", "/private/tmp/skillrun-501/skillrun-a/runs/other/x"):
        assert not asked.decide("file-read-data", path).allowed
        assert not asked.decide("file-write-create", path).allowed
    assert not asked.decide("file-write-unlink", SCRATCH).allowed


def test_path_has_only_folders_that_are_open() -> None:
    """Execvp stops at a folder that it may not look into, so PATH names none."""
    made, landscape = policy(read=["/Users/u/.nvm/versions/node/v22"])
    environ = (
        (
            "PATH",
            "/opt/homebrew/bin:/Users/u/.nvm/versions/node/v22/bin:/usr/local/bin:/usr/bin:/bin:/usr/binx",
        ),
    )
    plan = Seatbelt().plan(replace(made, environ=environ), _with_cwd(landscape), Probe("darwin", "arm64"))
    assert plan.wire["env"]["PATH"] == "/Users/u/.nvm/versions/node/v22/bin:/usr/bin:/bin"


def _with_cwd(landscape: Landscape) -> Landscape:
    return replace(landscape, spots={**landscape.spots, Path(WORK): Spot(1, 99, folder=True)})


def test_the_plan_and_its_guarantees() -> None:
    """The plan carries the profile and its parameters; what is not enforced is said."""
    made, landscape = policy(network=True)
    plan = Seatbelt().plan(made, _with_cwd(landscape), Probe("darwin", "arm64"))
    rendered = render(made, landscape)

    assert (plan.backend, plan.level) == ("seatbelt", None)
    assert plan.wire["profile"] == rendered.text
    assert plan.wire["parameters"] == list(rendered.parameters)
    assert {name: state.value for name, state in plan.guarantees.items()} == {
        "fs-read": "enforced",
        "fs-write": "enforced",
        "network": "open",
        "ipc": "partial",
        "processes": "partial",
        "environment": "enforced",
        "limits": "partial",
        "names": "partial",
    }
    assert plan.guarantees.missing(Requirement.CONFINED) == ()
    assert set(plan.guarantees.missing(Requirement.FULL)) == {"ipc", "processes", "limits"}
    assert [problem.rule for problem in Seatbelt().problems(Probe("linux", "x86_64"))] == ["backend-platform"]


def test_every_allow_has_its_reason() -> None:
    """Behind or above each allow, and behind each thing in it, the templates say why."""
    folder = resources.folder("profiles") / "seatbelt"
    for path in sorted(folder.glob("*.sb.j2")):
        inside = False
        for number, line in enumerate(path.read_text().splitlines(), 1):
            starts = line.startswith("(allow")
            inside = inside or starts
            thing = re.match(
                r"\s+\((literal|subpath|global-name|sysctl-name|ipc-|remote|target|require-all \(socket)",
                line,
            )
            if inside and (thing or (starts and line.rstrip().endswith(")"))):
                assert ";" in line, f"{path.name}:{number}: no reason: {line}"
            if inside and re.search(r"\)\)\s*(;|$)", line) and line.count("(") < line.count(")"):
                inside = False


def test_rendering_depends_on_nothing_else() -> None:
    """Grants change only lists of parameters: without a network, two policies of one shape have one text."""
    one, other = policy(read=["/a"]), policy(read=["/other"])
    assert render(*one).digest == render(*other).digest
    with_network = (replace(one[0], network=True), one[1])
    assert render(*with_network).digest != render(*one).digest
    assert Path(SKILL).name not in render(*one).text
    assert not parse(render(*one).text).loads, "a profile without its parameters must not load"
