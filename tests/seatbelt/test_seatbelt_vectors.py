"""Every published measurement of Seatbelt that nobody disputes, answered by the library."""

from __future__ import annotations

from typing import Any

import pytest
from vectors import given, undisputed

from skillrun.sandbox.seatbelt.evaluate import Evaluator, Tier
from skillrun.sandbox.seatbelt.parse import parse


@pytest.mark.parametrize("row", undisputed())
def test_vector(row: dict[str, Any]) -> None:
    """The profile loads or not as it does on a Mac, and the decision is the one that was measured."""
    profile = parse(row["profile"], row["params"])
    decision = Evaluator(profile).decide(row["operation"], row["target"], given(row))

    assert profile.loads is row["loads"], profile.faults
    assert ("allow" if decision.allowed else "deny") == row["expect"]
    asked_for_nothing = row["diagnostic"] == "unknown-operation-queried"
    assert decision.certain is (row["determinate"] and not asked_for_nothing), decision.doubts
    if not row["loads"]:
        assert row["diagnostic"] in {fault.rule for fault in profile.faults}
        assert decision.tier is Tier.NOT_LOADED
