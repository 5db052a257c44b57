"""Read back: the profile that a policy would get, ready to be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.sandbox.foresee import foresee
from skillrun.sandbox.seatbelt.evaluate import Evaluator
from skillrun.sandbox.seatbelt.parse import parse

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from skillrun.sandbox.policy import Policy


def read_back(policy: Policy, missing: Mapping[Path, bool]) -> Evaluator:
    """Render a policy that is not run and read its profile back. `missing` are write paths that a run would make."""
    from skillrun.sandbox.seatbelt.render import render  # noqa: PLC0415 - it brings Jinja2

    rendered = render(policy, foresee(policy, missing, split=False))
    return Evaluator(parse(rendered.text, dict(rendered.parameters)))
