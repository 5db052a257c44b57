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
    """Give each user in turn on whose machine the backend `linux` can be used.

    Skips with the reason where it can't; SKILLRUN_REQUIRE_BACKENDS=linux makes that a failure.
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
        usable(made, base)
        known_parties[name] = made
    return known_parties[name]


def usable(party: attack.Party, base: Path) -> None:
    """Ask the party's worker whether this kernel can confine anything."""
    folder = base / f"probe-{party.name}"
    folder.mkdir()
    if party.other:
        os.chown(folder, party.uid, party.uid)
    answer = party.ask({"op": "probe", "workspace": str(folder), "environ": {}, "temporary": str(folder)})
    if answer.get("problems") or "raised" in answer:
        attack.missing("linux", "; ".join(answer.get("problems") or map(str, answer["problems"])))


@pytest.fixture
def scene(party: attack.Party, open_base: Path, request: pytest.FixtureRequest) -> Iterator[attack.Scene]:
    """Give a fresh scene of each party, removed after the test."""
    base = open_base / f"{party.name}-{abs(hash(request.node.nodeid)):x}"
    base.mkdir(mode=0o700)
    if party.other:
        os.chown(base, party.uid, party.uid)
    yield attack.Scene(party, base)
    shutil.rmtree(base, ignore_errors=True)
