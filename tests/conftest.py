"""Fixtures for the tests that attack a sandbox, shared by the escape suite and the kill suite."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

import attack
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


# Scripts of a fixture skill, which the conformance suite of MCP calls by names that begin like tests.
collect_ignore = ["conformance"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--update-snapshots`."""
    parser.addoption("--update-snapshots", action="store_true", help="write the outputs on file anew")


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark that says which level of the Linux backend a test is about."""
    config.addinivalue_line(
        "markers", "level(*numbers): the levels of the backend `linux` that a test is about"
    )


# Every attack runs as both users at both levels in `make test-all`; `make test` takes one user for each level.
LONG_FORM = frozenset({("root", 2), ("user", 1)})


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out the combinations that a test's mark `level` rules out: they are no tests that were skipped.

    Of those left, half are the long form.
    """
    left = []
    for item in items:
        mark = item.get_closest_marker("level")
        number = getattr(item, "callspec", None) and item.callspec.params.get("level")  # type: ignore[attr-defined]
        if mark is None or number is None or number in mark.args:
            left.append(item)
        if attack.SUITE_IS_ROOT and number is not None:
            user = item.callspec.params.get("party")  # type: ignore[attr-defined]
            if (user, number) in LONG_FORM:
                item.add_marker(pytest.mark.slow)
    items[:] = left
    _thin_out(left)


# Suites whose tests start whole programs, half a second each, many times over with other parameters.
THINNED = frozenset({"cli", "kill", "launch", "mcp", "packaging", "running"})
MANY = 4


def _thin_out(items: list[pytest.Item]) -> None:
    """Leave every fourth set of parameters of such a test to `make test`, the others to `make test-all`."""
    together: dict[tuple[Path, str], list[pytest.Item]] = {}
    for item in items:
        thick = item.get_closest_marker("slow") is None and getattr(item, "callspec", None) is not None
        if thick and item.path.parent.name in THINNED:
            name = item.originalname  # type: ignore[attr-defined]
            together.setdefault((item.path, name), []).append(item)
    for same in together.values():
        if len(same) > MANY:
            for number, item in enumerate(same):
                if number % MANY:
                    item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def open_base() -> Iterator[Path]:
    """Give a folder that every user can enter, removed after the session."""
    base = attack.open_folder()
    yield base
    shutil.rmtree(base, ignore_errors=True)


@pytest.fixture(scope="session")
def outfit(open_base: Path) -> Path:
    """Give a copy of the package that every user can read."""
    return attack.make_outfit(open_base)


@pytest.fixture(scope="session")
def known_parties(open_base: Path) -> Iterator[dict[str, attack.Party]]:
    """Hold the parties that were made in this session, and end their workers after it."""
    known: dict[str, attack.Party] = {}
    yield known
    for party in known.values():
        party.close()


@pytest.fixture(params=attack.PARTIES)
def party(request: pytest.FixtureRequest, known_parties: dict[str, attack.Party]) -> attack.Party:
    """Give each user in turn.

    Skips with the reason where the backend can't be tried; SKILLRUN_REQUIRE_BACKENDS=linux makes that a
    failure, `linux-2` also asks for level 2.
    """
    if sys.platform != "linux":
        attack.missing("linux", f"this is {sys.platform}")
    base: Path = request.getfixturevalue("open_base")
    name = str(request.param)
    if name not in known_parties:
        uid = 0 if name == "root" else attack.USER_ID if attack.SUITE_IS_ROOT else os.geteuid()
        made = attack.Party(name, uid, request.getfixturevalue("outfit"))
        if made.python is None:
            attack.missing("linux", f"there is no Python that the user {uid} may execute")
        look(made, base)
        known_parties[name] = made
    return known_parties[name]


def look(party: attack.Party, base: Path) -> None:
    """Ask the party's worker which levels this kernel allows it."""
    folder = base / f"probe-{party.name}"
    folder.mkdir()
    if party.other:
        os.chown(folder, party.uid, party.uid)
    answer = party.ask({"op": "probe", "workspace": str(folder), "environ": {}, "temporary": str(folder)})
    party.lacking = {level: "; ".join(answer[str(level)]) for level in attack.LEVELS if answer[str(level)]}


@pytest.fixture(params=attack.LEVELS, ids=lambda level: f"level{level}")
def level(party: attack.Party, request: pytest.FixtureRequest) -> int:
    """Give each level of the Linux backend that a test is about (mark `level`; all without it)."""
    number = int(request.param)
    if number in party.lacking:
        attack.missing("linux" if number == 1 else "linux-2", party.lacking[number])
    return number


@pytest.fixture
def scene(
    party: attack.Party, level: int, open_base: Path, request: pytest.FixtureRequest
) -> Iterator[attack.Scene]:
    """Give a fresh scene of each party at each level, removed after the test."""
    base = open_base / f"{party.name[0]}{level}-{abs(hash(request.node.nodeid)):x}"
    base.mkdir(mode=0o700)
    if party.other:
        os.chown(base, party.uid, party.uid)
    yield attack.Scene(party, base, level=level)
    shutil.rmtree(base, ignore_errors=True)
