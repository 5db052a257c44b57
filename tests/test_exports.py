"""The public names of the library are exactly those that `skillrun.__all__` lists."""

from __future__ import annotations

import subprocess
import sys
import types

import skillrun

# What `from __future__` and `typing` leave in a module's names is not offered to anybody.
INCIDENTAL = frozenset({"TYPE_CHECKING", "annotations"})


def test_all_is_what_is_public() -> None:
    """`__all__` names every public name once, in order, and `dir` shows the same, lazily loaded names included."""
    in_order = sorted(
        set(skillrun.__all__), key=lambda name: (not name.isupper(), name)
    )  # constants first, as ruff has it
    assert list(skillrun.__all__) == in_order
    # In a fresh interpreter: other tests import submodules, which then appear as attributes of the package.
    program = "import skillrun; print(*(name for name in dir(skillrun) if not name.startswith('_')))"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    names = set(answer.stdout.split()) - INCIDENTAL
    public = {name for name in names if not isinstance(getattr(skillrun, name), types.ModuleType)}
    assert public == {name for name in skillrun.__all__ if not name.startswith("_")}


def test_every_listed_name_can_be_had() -> None:
    """`from skillrun import *` works, lazily loaded names included, and no module is passed off as a name."""
    assert "__version__" in skillrun.__all__
    for name in skillrun.__all__:
        assert not isinstance(getattr(skillrun, name), types.ModuleType)


def test_an_unknown_name_is_an_attribute_error() -> None:
    """A name that is not there is refused as Python refuses it, also when names load lazily."""
    assert not hasattr(skillrun, "no_such_name")
