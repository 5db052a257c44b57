"""Where the shipped data lies: `profiles/` and `skills/`, in a wheel or in a checkout."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parent


def folder(kind: str) -> Path:
    """Return the folder of shipped data of one kind, `profiles` or `skills`.

    A wheel carries it inside the package (`_data`); an editable install uses the checkout beside it.
    """
    inside = PACKAGE / "_data" / kind
    return inside if inside.is_dir() else PACKAGE.parent / kind


@functools.cache
def table(name: str) -> Any:
    """Read a YAML table below `profiles/`, such as `linux/seccomp`. Shipped data, so reading it can't fail softly."""
    import yaml  # noqa: PLC0415 - heavy, and `--version` needs none of it

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load((folder("profiles") / f"{name}.yaml").read_bytes(), Loader=loader)  # noqa: S506 - both are safe loaders
