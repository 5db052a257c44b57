"""Foresee: the landscape of a run that is not started, so that its profile can be written."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from skillrun.sandbox.landscape import Spot, survey

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from skillrun.sandbox.landscape import Landscape
    from skillrun.sandbox.policy import Policy


def foresee(policy: Policy, missing: Mapping[Path, bool], *, split: bool) -> Landscape:
    """Survey a policy whose own folders and missing write paths are made only for a run.

    `missing` says of each write path that is not there whether it will be a folder. Raises ConfigError as
    `survey` does.
    """
    there = tuple(rule for rule in policy.rules if not rule.own and rule.path not in missing)
    landscape = survey(replace(policy, rules=there), split=split)
    to_come = {rule.path: Spot(0, 0, folder=True) for rule in policy.rules if rule.own}
    to_come |= {path: Spot(0, 0, folder=folder) for path, folder in missing.items()}
    return replace(landscape, spots={**landscape.spots, **to_come})
