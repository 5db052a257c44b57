"""Two judges: for random policies and paths the model and the live kernel give one answer.

The model is ten lines over the words of DESIGN 5 to 8, written apart from the product. One run answers for
all paths of one policy, so that thousands of pairs take seconds.
"""

from __future__ import annotations

import json
import os
import random
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from attack import Scene

# Pairs of a policy and a path for each party and level; the long form is what issue 4 asks for.
PAIRS = int(os.environ.get("SKILLRUN_FUZZ", "0")) or 300
SEED = int(os.environ.get("SKILLRUN_SEED", "0")) or random.SystemRandom().randrange(1 << 32)

ASK = """
import json, os, sys
answers = {}
for path in json.load(sys.stdin):
    read = write = False
    try:
        if os.path.isdir(path) and not os.path.islink(path):
            os.listdir(path); read = True
        else:
            with open(path, "rb") as f: f.read(1)
            read = True
    except OSError: pass
    try:
        if os.path.isdir(path):
            mark = os.path.join(path, "planted-%d" % os.getpid())
            os.close(os.open(mark, os.O_CREAT | os.O_EXCL | os.O_WRONLY)); os.unlink(mark); write = True
        else:
            os.close(os.open(path, os.O_WRONLY)); write = True
    except OSError: pass
    answers[path] = [read, write]
print("ANSWERS" + json.dumps(answers))
"""
NAMES = ("a", "b", "ab", "a.txt", "data", "out", ".env", ".git", "deep")


@dataclass(frozen=True)
class World:
    """A random tree and a random policy over it. Paths are relative to the workspace and physical."""

    files: tuple[str, ...]
    folders: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    read: tuple[str, ...]
    write: tuple[str, ...]
    deny: tuple[str, ...]


def draw(rng: random.Random) -> World:
    """Draw a world: prefix siblings, nested and overlapping roots, denied and protected names, links."""
    folders = {""}
    for _ in range(rng.randint(4, 9)):
        parent = rng.choice(sorted(folders))
        if parent.count("/") < 3:
            name = rng.choice(("a", "b", "ab", "data", "out", "deep"))
            folders.add(f"{parent}/{name}".strip("/"))
    folders.discard("")
    files = {
        f"{rng.choice(['', *sorted(folders)])}/{rng.choice(('f', 'a.txt', '.env', 'g'))}".strip("/")
        for _ in range(9)
    }
    if rng.random() < 0.5:
        base = rng.choice(["", *sorted(folders)])
        git = f"{base}/.git".strip("/")
        folders |= {git, f"{git}/hooks", f"{git}/objects"}
        files |= {f"{git}/config", f"{git}/HEAD", f"{git}/hooks/post-commit"}
    places = sorted(folders | files)
    links = tuple(
        (f"link{n}", rng.choice([*places, "../outside/secret", "/etc/shadow"]))
        for n in range(rng.randint(0, 3))
    )
    pick = lambda: tuple(sorted({rng.choice([".", *places]) for _ in range(rng.randint(0, 3))}))  # noqa: E731
    deny = tuple(sorted({rng.choice(places) for _ in range(rng.randint(0, 2))}))
    return World(tuple(sorted(files)), tuple(sorted(folders)), links, pick(), pick(), deny)


def below(path: str, root: str) -> bool:
    """Whether a path is a root or lies in it."""
    return root in {".", path} or path.startswith(root + "/")


def allowed(world: World, path: str, *, write: bool) -> bool:
    """Answer as the model: secrets by name right under a root are denied, hooks and config of git protected."""
    roots = world.write if write else (*world.read, *world.write)
    holding = [root for root in roots if below(path, root)]
    granted = {*least({*world.read, *world.write}), *least(set(world.write))}
    secret = any(below(path, f"{root}/.env".removeprefix("./")) for root in granted | {"."})
    secret |= path.rpartition("/")[2] == ".env" and path in granted
    denied = any(below(path, name) for name in world.deny)
    parts = path.split("/")
    protected = any(
        parts[i] == ".git" and (parts[i + 1 : i + 2] in (["hooks"], ["config"])) for i in range(len(parts))
    )
    return bool(holding) and not denied and not secret and not (write and protected)


def least(roots: set[str]) -> set[str]:
    """Drop roots that lie in another one."""
    return {root for root in roots if not any(other != root and below(root, other) for other in roots)}


def build(scene: Scene, world: World) -> None:
    """Make the tree on disk."""
    for folder in world.folders:
        scene.folder(scene.workspace / folder)
    for file in world.files:
        scene.file(scene.workspace / file)
    for name, target in world.links:
        scene.link(
            scene.workspace / name, target if target.startswith(("/", "..")) else scene.workspace / target
        )
    scene.secret(scene.outside / "secret")


def judge(scene: Scene, world: World) -> list[str]:
    """Ask the kernel about every path of a world, and list where it does not say what the model says."""
    build(scene, world)
    ceiling = scene.base / "ceiling.yaml"
    ceiling.write_text(
        "sandbox:\n  fs_read: ['${workspace}']\n  fs_write: ['${workspace}']\n"
        f"  deny: {json.dumps([str(scene.workspace / name) for name in world.deny])}\n"
    )
    scene.own(ceiling)
    scene.ceiling = ceiling
    front = f"fs_read: {json.dumps(list(world.read))}\nfs_write: {json.dumps(list(world.write))}"
    scene.script(ASK, front=front, prelude=False)
    paths = {str(scene.workspace / place): place for place in (*world.folders, *world.files)}
    through = {str(scene.workspace / name): target for name, target in world.links}
    outside = [str(scene.outside / "secret"), str(scene.home), "/etc/shadow"]
    run = scene.confined(stdin=json.dumps([*paths, *through, *outside]))
    assert "ANSWERS" in run.out, (world, run.told, run.err)
    answers = json.loads(run.out.split("ANSWERS", 1)[1])
    wrong = []
    for path, (read, write) in answers.items():
        place = paths.get(path) or through.get(path)
        inside = place is not None and not place.startswith(("/", ".."))
        want_read = inside and allowed(world, place, write=False)
        want_write = inside and allowed(world, place, write=True)
        folder = inside and place in world.folders
        # What splitting costs at level 1, as its warning says: a folder that holds something kept can't be
        # listed or written itself. It may then be less than the model, never more.
        # A link is a name in its folder: where that was not granted it may not be there, but never leads further.
        less = (scene.level == 1 and folder) or path in through
        # At level 2 the folders on the way to something granted are there, made for the run and holding nothing else.
        if scene.level == 2 and folder and any(below(root, place) for root in (*world.read, *world.write)):
            continue
        if (read and not want_read) or (want_read and not read and not less):
            wrong.append(f"read {place or path}: kernel {read}, model {want_read}")
        if (write and not want_write) or (want_write and not write and not less):
            wrong.append(f"write {place or path}: kernel {write}, model {want_write}")
    return wrong


def test_model_and_kernel_agree(scene: Scene) -> None:
    """For random trees, requests and denials the script can do exactly what the model says."""
    rng = random.Random(SEED)
    asked = 0
    round_ = 0
    while asked < PAIRS:
        round_ += 1
        world = draw(rng)
        here = type(scene)(scene.party, scene.folder(scene.base / f"r{round_}"), level=scene.level)
        wrong = judge(here, world)
        assert not wrong, (f"SKILLRUN_SEED={SEED} round {round_}", world, wrong)
        asked += 2 * (len(world.files) + len(world.folders) + len(world.links) + 3)


@pytest.mark.level(2)
def test_the_model_is_not_always_no(scene: Scene) -> None:
    """The judges are asked about paths that are allowed, too: an empty world would prove nothing."""
    rng = random.Random(7)
    worlds = [draw(rng) for _ in range(30)]
    answers = [
        allowed(w, p, write=wr) for w in worlds for p in (*w.files, *w.folders) for wr in (False, True)
    ]

    assert 0.2 < sum(answers) / len(answers) < 0.9
    assert Path(scene.workspace).exists()
