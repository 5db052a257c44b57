"""The install folders that an interpreter needs to boot, recognised by what lies in them."""

from __future__ import annotations

import functools
import os
import stat
from pathlib import Path
from typing import Any

from skillrun import resources
from skillrun.skills.disk import home_or_above, is_inside, links_on_the_way, read_start

_CONFIG = "pyvenv.cfg"
_CONFIG_LIMIT = 1 << 16
_CHAIN_LIMIT = 8  # environments made from environments; two are rare


def find_prefixes(
    path: str, real: str, family: str, *, home: Path | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the folders an interpreter needs, physical, and the link nodes met on the way to them.

    `path` is the interpreter as found, `real` its physical file. What is not recognised, belongs to
    the system, or is a home folder, `~/.local`, above a home or above a secret is left out: then the
    file alone has to do.
    """
    real_home = None if home is None else os.path.realpath(home)
    tree = next((line for line in _table()["trees"] if is_inside(real, line["under"])), None)
    trees: list[str] = []
    prefixes: list[str] = []
    links: list[str] = []
    if tree is not None:
        trees = [os.path.realpath(needed) for needed in tree["needs"] if os.path.isdir(needed)]  # noqa: PTH112 - shipped strings
    elif not _is_system(real):
        prefixes += _above(real, family)
    if family == "python":
        chain, links = _environments(path)
        prefixes += chain
    kept = [
        prefix
        for prefix in dict.fromkeys((*trees, *prefixes))
        # A package tree is needed where it is: not every policy that opens /usr/bin opens /usr/local.
        if (prefix in trees or not _is_system(prefix)) and _may_be_prefix(prefix, real_home)
    ]
    return tuple(kept), tuple(links)


def _above(real: str, family: str) -> list[str]:
    """Return PREFIX of PREFIX/bin/NAME where a landmark of the family says that it is an install."""
    folder, _, _ = real.rpartition("/")
    prefix, _, last = folder.rpartition("/")
    if last != "bin" or not prefix:
        return []
    landmarks = _table()["landmarks"].get(family, ())
    try:
        found = any(any(Path(prefix).glob(line["file"])) for line in landmarks)
    except OSError:
        return []
    return [prefix] if found else []


def _environments(path: str) -> tuple[list[str], list[str]]:
    """Follow a virtual environment to the installation it was made from.

    Python looks for `pyvenv.cfg` beside the program as it was called, or one folder up, without
    following the program's own link; `home` in it names the `bin` of the installation.
    """
    prefixes: list[str] = []
    links: list[str] = []
    for _ in range(_CHAIN_LIMIT):
        folder = os.path.realpath(path.rpartition("/")[0] or "/")
        config = next((one for one in (folder, folder.rpartition("/")[0]) if _has_config(one)), None)
        if config is None or config in prefixes:
            break
        prefixes.append(config)
        base = _base(f"{config}/{_CONFIG}")
        if base is None:
            break
        try:
            more, real = links_on_the_way(base)
        except OSError:
            break
        links += more
        if not _is_system(real):
            prefixes += _above(f"{real}/python", "python")
        path = f"{real}/python"
    return prefixes, links


def _has_config(folder: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(f"{folder}/{_CONFIG}").st_mode)
    except (OSError, ValueError):
        return False


def _base(config: str) -> str | None:
    """Return the absolute folder that `home = …` of a pyvenv.cfg names."""
    try:
        text = read_start(config, _CONFIG_LIMIT)[0].decode("utf-8", "surrogateescape")
    except OSError:
        return None
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals and key.strip().lower() == "home":
            folder = value.strip()
            return folder if folder.startswith("/") and "\x00" not in folder else None
    return None


def _is_system(path: str) -> bool:
    return any(is_inside(path, line["path"]) for line in _table()["system"])


def _may_be_prefix(prefix: str, home: str | None) -> bool:
    """Whether a folder may be granted whole: it is nobody's home and holds nobody's secrets."""
    if home_or_above(prefix, None) or (home is not None and is_inside(home, prefix)):
        return False
    # `~/.local` holds an interpreter's files beside everything that other programs keep about their user.
    if home is not None and is_inside(f"{home}/.local/share", prefix):
        return False
    return not any(os.path.lexists(f"{prefix}/{line['name']}") for line in _table()["never_above"])


@functools.cache
def _table() -> dict[str, Any]:
    shipped: dict[str, Any] = resources.table("runtime/interpreters")
    return shipped
