# ruff: noqa: PTH112, PTH113, PTH114, PTH116, PTH119, PTH120 - texts and the kernel only: pathlib is what the product uses
"""A model of the decision, written apart from the product: one question about one path, answered point by point.

Paths are texts. It shares no code with skillrun; the kernel (stat, realpath) follows the links. A layer is
a dict with `read`, `write` (lists of texts or None: says nothing) and `deny` (names).
"""

from __future__ import annotations

import os

SECRET = ".env"


def real(text: str) -> str | None:
    """Follow a path as the kernel does; a missing tail hangs on its parent; None: it leads nowhere."""
    text = "/" + "/".join(part for part in text.split("/") if part not in {"", "."})
    try:
        os.stat(text)
    except FileNotFoundError:
        head, _, tail = text.rpartition("/")
        parent = None if os.path.islink(text) else real(head or "/")
        if parent is None or (os.path.lexists(parent) and not os.path.isdir(parent)):
            return None
        new = os.path.dirname(parent) if tail == ".." else f"{parent.rstrip('/')}/{tail}"
        return real(new) if new != text and os.path.lexists(new) else new
    except OSError:
        return None
    return os.path.realpath(text)


def below(path: str, roots: list) -> bool:
    """Whether a path is one of some roots or below one."""
    return any(root is not None and (path + "/").startswith(root.rstrip("/") + "/") for root in roots)


def answer(request: dict, layers: list[dict], workspace: str, path: str) -> tuple[bool, bool]:
    """Say whether a physical path may be read and written."""
    lists = {
        kind: [[r for r in map(real, layer[kind]) if r] for layer in layers if layer[kind] is not None]
        for kind in ("read", "write")
    }
    asks = {kind: [real(text) for text in request[kind]] for kind in ("read", "write")}

    def may(kind: str, point: str) -> bool:
        return below(point, asks[kind]) and all(below(point, roots) for roots in lists[kind])

    def reads(point: str) -> bool:
        asked = below(point, asks["read"]) or below(point, asks["write"])
        allowed = all(below(point, roots) for roots in lists["read"])
        return asked and (allowed or all(below(point, roots) for roots in lists["write"]))

    # Every root that can come out of pairwise meets is a path that somebody wrote; granted are those that may be read.
    written = {r for side in (*lists["read"], *lists["write"], *asks.values()) for r in side if r}

    def top(roots: set) -> set:
        return {root for root in roots if not below(root, [other for other in roots if other != root])}

    # Write roots count as granted places too, also below a read root.
    granted = top({root for root in written if reads(root)}) | top(
        {root for root in written if may("write", root)}
    )
    own = {r for layer in layers for kind in ("read", "write") for r in map(real, layer[kind] or []) if r}
    base = [text for kind in ("read", "write") for text in layers[0][kind] or []]
    named = {
        f"{(real(os.path.dirname(t)) or '').rstrip('/')}/{os.path.basename(t)}"
        for t in (b.rstrip("/") for b in base)
    }
    named |= set(map(real, base))
    denied = set()
    for names, tops, spare in (
        ([name for layer in layers for name in layer["deny"]], granted | own | {workspace}, set()),
        (
            [SECRET],
            {g for g in granted if not os.path.isfile(g)}
            | {w for w in [workspace] if below(w, list(granted))},
            named,
        ),
    ):
        for name in names:
            found = {f"{top.rstrip('/')}/{name}" for top in tops if not os.path.isfile(top)}
            for root in granted:
                deep = max((len(r.split("/")) for r in own if below(root, [r])), default=1)
                parts = root.split("/")
                found |= {"/".join(parts[: i + 1]) for i in range(deep, len(parts)) if parts[i] == name}
            denied |= ({*found, *map(real, filter(os.path.islink, found))} - spare) - {None}
    return (reads(path) or may("write", path)) and not below(path, list(denied)), may(
        "write", path
    ) and not below(path, list(denied))
