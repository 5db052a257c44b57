"""The third judge: Seatbelt's evaluator on the rendered profile answers what the model and the kernel answer.

No Mac is needed: the profile is made from the very policy that Linux enforces, and read back by the evaluator that is
held to published measurements (tests/seatbelt).
"""

from __future__ import annotations

import json
import os
import random
from typing import TYPE_CHECKING

import pytest
from test_two_judges import ASK, allowed, below, build, draw

from skillrun.host import Host
from skillrun.resources import table
from skillrun.runner import Runner
from skillrun.sandbox.seatbelt.read_back import read_back

if TYPE_CHECKING:
    from pathlib import Path

    from attack import Scene
    from test_two_judges import World

    from skillrun.sandbox.seatbelt.evaluate import Evaluator

QUESTIONS = int(os.environ.get("SKILLRUN_FUZZ", "0")) or 1200
SEED = int(os.environ.get("SKILLRUN_SEED", "0")) or random.SystemRandom().randrange(1 << 32)
READING = (
    "file-read-data", "file-read-metadata", "file-read-xattr", "file-test-existence", "file-map-executable",
    "process-exec*", "process-exec-interpreter",
)  # fmt: skip
WRITING = (
    "file-write-create", "file-write-data", "file-write-mode", "file-write-owner", "file-write-times",
    "file-write-flags", "file-write-xattr", "file-write-acl", "file-link", "file-clone",
)  # fmt: skip
NEVER = ("file-ioctl", "file-write-setugid", "file-mount", "file-chroot")


# Folders above protected names: the profile lets nobody make one where a protected name could come with it, by a rename.
# The kernel of Linux asks about each name, so the model has no such rule; tests/seatbelt has its tests.
ABOVE = {part for line in table("protected")["names"] for part in line["name"].strip("/").split("/")[:-1]}


def profile_of(world: World, base: Path) -> Evaluator:
    """Make the profile that a script would get in a world, and read it back."""
    ceiling = base / "ceiling.yaml"
    host = Host(home=base / "home", environ={"PATH": "/usr/bin:/bin"}, temporary=base / "tmp")
    with Runner(workspace=base / "work", skills=[base / "skills"], ceiling=ceiling, host=host) as runner:
        preview = runner.preview("attack")
    evaluator = read_back(preview.ready.policy, dict(preview.ready.grant.missing))
    assert str(base) not in evaluator.profile.source.text
    assert evaluator.profile.loads, evaluator.profile.faults
    return evaluator


def lay(base: Path, world: World) -> None:
    """Make the world's tree, its ceiling and the skill that asks."""
    work = base / "work"
    for folder in (
        "home",
        "tmp",
        "skills/attack/scripts",
        "outside",
        "work",
        *(f"work/{f}" for f in world.folders),
    ):
        (base / folder).mkdir(parents=True, exist_ok=True)
    for file in world.files:
        (work / file).parent.mkdir(parents=True, exist_ok=True)
        (work / file).write_text("x")
    for name, target in world.links:
        (work / name).symlink_to(target if target.startswith(("/", "..")) else work / target)
    (base / "outside/secret").write_text("x")
    (base / "ceiling.yaml").write_text(
        "sandbox:\n  fs_read: ['${workspace}']\n  fs_write: ['${workspace}']\n"
        f"  deny: {json.dumps([str(work / name) for name in world.deny])}\n"
    )
    (base / "skills/attack/SKILL.md").write_text(
        "---\nname: attack\ndescription: d\n"
        f"fs_read: {json.dumps(list(world.read))}\nfs_write: {json.dumps(list(world.write))}\n---\n"
    )
    (base / "skills/attack/scripts/attack.sh").write_text("#!/bin/sh\n")


def reached(world: World, place: str) -> bool:
    """Whether a place lies above something granted or kept: its metadata may be looked up then, no more."""
    return any(below(other, place) for other in (*world.read, *world.write)) or place == "."


def test_profile_and_model_agree(tmp_path: Path) -> None:
    """For random trees, requests and denials, every operation on every path is decided as the model says."""
    rng = random.Random(SEED)
    base = tmp_path.resolve()
    asked, round_, yes = 0, 0, 0
    # A few worlds can all be of one answer, which would prove nothing: then more are asked.
    while asked < QUESTIONS or not 0.03 < yes / asked < 0.9:
        round_ += 1
        world, here = draw(rng), base / f"r{round_}"
        lay(here, world)
        evaluator = profile_of(world, here)
        places = {str(here / "work" / place): place for place in (*world.folders, *world.files)}
        # Names that are not there, also ones that begin like those that are.
        for place in list(places.values())[:6]:
            places[str(here / "work" / f"{place}x")] = f"{place}x"
            if place in world.folders:
                places[str(here / "work" / place / "new")] = f"{place}/new"
        for path, place in places.items():
            want_read, want_write = allowed(world, place, write=False), allowed(world, place, write=True)
            expected = dict.fromkeys(READING, want_read) | dict.fromkeys(WRITING, want_write)
            expected |= dict.fromkeys(NEVER, False)
            if reached(world, place):
                del expected["file-read-metadata"], expected["file-test-existence"]
            if place.rpartition("/")[2] in ABOVE:
                del expected["file-write-create"]
            for operation, want in expected.items():
                decision = evaluator.decide(operation, path)
                told = (f"SKILLRUN_SEED={SEED} round {round_}", operation, place, world, decision)
                assert decision.allowed is want, told
                assert decision.certain, told
                asked += 1
                yes += want
            for operation in ("network-outbound", "network-bind"):
                assert not evaluator.decide(operation, f"unix:{path}").allowed
        for path in (str(here / "outside/secret"), str(here / "home"), "/private/etc/master.passwd"):
            for operation in (*READING, *WRITING, *NEVER):
                assert (
                    not evaluator.decide(operation, path).allowed
                    or "metadata" in operation
                    or "existence" in operation
                )
                asked += 1


@pytest.mark.level(2)
def test_profile_and_kernel_agree(scene: Scene) -> None:
    """What the live kernel lets a script do to a path that exists, the profile of the same policy allows too."""
    rng = random.Random(SEED)
    rounds = max(2, QUESTIONS // 2000)
    for round_ in range(rounds):
        world = draw(rng)
        here = type(scene)(scene.party, scene.folder(scene.base / f"k{round_}"), level=scene.level)
        build(here, world)
        here.ceiling = here.base / "ceiling.yaml"
        here.ceiling.write_text(
            "sandbox:\n  fs_read: ['${workspace}']\n  fs_write: ['${workspace}']\n"
            f"  deny: {json.dumps([str(here.workspace / name) for name in world.deny])}\n"
        )
        here.own(here.ceiling)
        front = f"fs_read: {json.dumps(list(world.read))}\nfs_write: {json.dumps(list(world.write))}"
        here.script(ASK, front=front, prelude=False)
        paths = {str(here.workspace / place): place for place in (*world.folders, *world.files)}
        run = here.confined(stdin=json.dumps([*paths, str(here.outside / "secret")]))
        answers = json.loads(run.out.split("ANSWERS", 1)[1])
        os.chown(here.ceiling, os.getuid(), -1)  # the profile is made by whoever runs these tests
        evaluator = profile_of(world, here.base)
        for path, (read, write) in answers.items():
            place = paths.get(path, "")
            folder = place in world.folders
            # Folders on the way to something granted are there at level 2, made for the run and empty.
            if folder and any(below(root, place) for root in (*world.read, *world.write)):
                continue
            told = (f"SKILLRUN_SEED={SEED} round {round_}", path, world)
            assert evaluator.decide("file-read-data", path).allowed is read, told
            target = f"{path}/planted-1" if folder else path
            operation = "file-write-create" if folder else "file-write-data"
            assert evaluator.decide(operation, target).allowed is write, told
