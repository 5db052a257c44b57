"""The specification's string form: `metadata` as a map of strings, each read as what it stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skillrun.skills.node import Items, Scalar
from skillrun.skills.strict_yaml import core_scalar

if TYPE_CHECKING:
    from skillrun.skills.node import Node

_PATHS: Final = ("fs_read", "fs_write")
_LISTS: Final = (*_PATHS, "network", "env")


def unfold(key: str, node: Node) -> Node:
    """Return what a string of the string form stands for: a YAML 1.2 scalar, or a blank-separated list.

    What is not a string stays as it is: a reader upstream may have typed the value already.
    """
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        return node
    if "," in node.value and key in _PATHS:
        return node  # as one text with a comma it is an error there, which says what to write
    value = core_scalar(node.value.strip())
    if key not in _LISTS:
        return Scalar(value, node.text, node.at)
    if value is None and node.value.strip():
        return Scalar(None, node.text, node.at)
    if key == "network" and isinstance(value, bool):
        return Scalar(value, node.text, node.at)
    return Items(tuple(Scalar(word, word, node.at) for word in node.value.split()), node.at)
