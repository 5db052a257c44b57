# ruff: noqa: PTH114, PTH115, PTH120 - links are followed as texts here, apart from the product
"""Random requests, layers and paths: the decision, the algebra and explain agree with a model written apart.

`SKILLRUN_FUZZ=20000` is the long form. `SKILLRUN_SEED` repeats a run.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import reference_model
from permission_scene import DIGEST, text_skill

from skillrun.permissions.capabilities import Capabilities
from skillrun.permissions.ceiling import Bound, Ceiling
from skillrun.permissions.config import Role
from skillrun.permissions.decide import decide
from skillrun.permissions.explain import Access, Decision, explain_path
from skillrun.permissions.layers import Layers
from skillrun.permissions.place import Place
from skillrun.permissions.spelled import Spelled
from skillrun.problem import At

if TYPE_CHECKING:
    from skillrun.permissions.grant import Grant

ROUNDS = int(os.environ.get("SKILLRUN_FUZZ", "1500"))
SEED = int(os.environ.get("SKILLRUN_SEED") or random.SystemRandom().randrange(2**32))
NAMES = ("a", "ab", "b", "abc", ".env", "f")
WHERE = At(flag="test")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a workspace with folders, files, prefix siblings, links inside, out, up, to nothing and in a circle."""
    top = tmp_path_factory.mktemp("tree").resolve()
    work = top / "w"
    for folder in ("a/ab/b", "a/b", "ab/a", "b/abc", "a/.env"):
        (work / folder).mkdir(parents=True)
    for file in ("f", "a/f", "ab/f", "b/.env", "a/ab/f"):
        (work / file).write_text("x")
    (top / "out/a/b").mkdir(parents=True)
    (top / "skill").mkdir()
    for link, target in (
        ("a/in", "../b"),
        ("ab/up", ".."),
        ("b/out", str(top / "out")),
        ("b/gone", str(top / "none/x")),
        ("ab/loop", "loop"),
        ("ab/b", "../a/ab"),
        ("abc", "a/in/abc"),
        (".env", "ab/a"),
        ("out-link", str(top / "out/a")),
    ):
        (work / link).symlink_to(target)
    return top


def spelling(rng: random.Random, tree: Path, base: str) -> str:
    """Make a path as people and attackers write it, from a folder of the tree."""
    words = rng.choices(
        (*NAMES, "in", "up", "out", "gone", "loop", "out-link", "new", ".", "..", "", "f"),
        k=rng.randrange(0, 5),
    )
    start = rng.choice((base, base, base, f"{tree}/w/a", f"{tree}/w/ab", f"{tree}/out", str(tree)))
    return "/".join((start, *words)) or "/"


def paths(rng: random.Random, tree: Path, most: int) -> list[str]:
    """Make some spellings."""
    return [spelling(rng, tree, f"{tree}/w") for _ in range(rng.randrange(most + 1))]


def ceiling(layer: dict) -> Ceiling:
    """Turn a layer of the model into one of the product."""

    def bound(texts: list[str] | None) -> Bound | None:
        return None if texts is None else Bound(tuple(Spelled(text, WHERE) for text in texts), WHERE)

    return Ceiling(
        WHERE, fs_read=bound(layer["read"]), fs_write=bound(layer["write"]), deny=bound(layer["deny"])
    )


def escapes(tree: Path, text: str) -> bool:
    """Whether a ceiling path leaves the workspace through a link in it: the product lets such a line allow nothing."""
    work = f"{tree}/w"
    target = reference_model.real(text)
    if target is None or reference_model.below(target, [work]):
        return False
    steps = text.split("/")
    return any(
        os.path.islink(node)
        and reference_model.below(f"{reference_model.real(os.path.dirname(node))}", [work])
        for node in ("/".join(steps[: i + 1]) for i in range(1, len(steps)))
    ) or _through(text, work)


def _through(text: str, work: str) -> bool:
    # A link outside may lead in, and a link in there out again; follow node by node with the kernel's own words.
    here, todo, hops = "", [p for p in text.split("/") if p not in {"", "."}], 0
    while todo and hops < 50:
        part = todo.pop(0)
        if part == "..":
            here = os.path.dirname(here)
            continue
        node = f"{here.rstrip('/')}/{part}"
        if os.path.islink(node):
            hops += 1
            if reference_model.below(node, [work]):
                return True
            target = os.readlink(node)
            here = "" if target.startswith("/") else here
            todo = [p for p in target.split("/") if p not in {"", "."}] + todo
        else:
            here = node
    return False


def case(rng: random.Random, tree: Path) -> tuple[dict, list[dict]]:
    """Make a request and one to three layers."""
    request = {"read": paths(rng, tree, 3), "write": paths(rng, tree, 2)}
    layers = []
    for number in range(rng.randrange(1, 4)):
        layer: dict = {"deny": [n for n in NAMES if rng.random() < 0.08]}
        for kind in ("read", "write"):
            silent = number > 0 and rng.random() < 0.4
            texts = [text for text in paths(rng, tree, 3) if not escapes(tree, text)]
            layer[kind] = None if silent else texts
        layers.append(layer)
    return request, layers


def test_the_decision_agrees_with_the_model(tree: Path) -> None:
    """For random requests, layers and paths on a real tree both say the same about reading and writing, and so does explain."""
    place = Place(tree / "w", tree / "skill", tree / "scratch")
    points = [Path(folder) for folder, _, _ in os.walk(tree) if "skill" not in folder]
    points += [point / name for point in points for name in ("f", ".env", "new", "abc")]
    allowed = 0
    for number in range(ROUNDS):
        seed = SEED + number
        rng = random.Random(seed)
        request, layers = case(rng, tree)
        front = "".join(f"fs_{kind}: {list(texts)!r}\n" for kind, texts in request.items())
        base, *hard = map(ceiling, layers)
        stack = Layers(base=base, base_role=Role.OPERATOR, hard=tuple(hard))
        grant = decide(text_skill(f"name: x\n{front}", tree / "skill"), stack, place, digest=DIGEST)
        denied = [str(d.path) for d in grant.denied if d.path.name in NAMES]
        for point in rng.sample(points, 4):
            path = reference_model.real(str(point))
            if path is None:
                continue
            want = reference_model.answer(request, layers, f"{tree}/w", path)
            got = (grant.allows_read(Path(path)), grant.allows_write(Path(path)))
            story = f"SKILLRUN_SEED={seed}: {path}\nrequest {request}\nlayers {layers}\ngrant {grant.capabilities}\n{denied}"
            assert got == want, story
            for access, said in zip((Access.READ, Access.WRITE), got, strict=True):
                explained = explain_path(grant, place, str(point), access)
                assert (explained.decision is Decision.ALLOWED) == said, story
            allowed += got[0]
        laws(grant, request, layers, seed)
    assert allowed > ROUNDS // 10, "nearly nothing was allowed, so the comparison says little"


def laws(grant: Grant, request: dict, layers: list[dict], seed: int) -> None:
    """Grant ≤ request and grant ≤ every layer (law 1); what is to be made lies inside and is not denied."""
    rights = grant.capabilities

    def known(texts: list[str]) -> frozenset[Path]:
        return frozenset(Path(r) for r in map(reference_model.real, texts) if r)

    def only_paths(reads: frozenset[Path], writes: frozenset[Path]) -> Capabilities:
        return Capabilities(reads, writes)

    mine = only_paths(rights.fs_read, rights.fs_write)
    assert mine <= only_paths(known(request["read"]), known(request["write"])), f"SKILLRUN_SEED={seed}"
    everything = frozenset({Path("/")})
    for layer in layers:
        reads = everything if layer["read"] is None else known(layer["read"])
        writes = everything if layer["write"] is None else known(layer["write"])
        assert mine <= only_paths(reads, writes), f"SKILLRUN_SEED={seed}"
    for path, _ in grant.missing:
        assert rights.allows_write(path), f"SKILLRUN_SEED={seed}"
        assert grant.denial(path) is None, f"SKILLRUN_SEED={seed}"
