"""The page for whoever is on call names every error of launch and running, and no other."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
MODULES = (
    "launch/faults.py", "launch/launcher.py", "launch/pair.py", "launch/verdict.py", "running/admission.py", "running/handle.py",
    "running/many.py", "running/elsewhere.py", "report/records.py",
)  # fmt: skip
# Told to whoever made the call, and told with a place by `run`: about the script, the call or its arguments.
OF_THE_CALL = {
    "arguments-too-large", "interpreter-not-found", "not-executable", "start-failed", "at-once", "limit",
    "flag-env-elsewhere", "stopped",
}  # fmt: skip


def rules_in(path: Path) -> set[str]:
    """Give the rules of the problems that a module makes."""
    return {
        node.args[0].value
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", "") in {"error", "warning"}
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    }


def test_every_error_of_a_service_is_on_the_page() -> None:
    """A rule that somebody reads at night is found on the page, and the page names none that is not there."""
    page = (ROOT / "docs/how-to/be-on-call.md").read_text(encoding="utf-8")
    table = page.split("## Errors with a name")[1].split("\n## ")[0]
    told = {
        rule
        for line in table.splitlines()
        if line.startswith("| `")
        for rule in re.findall(r"`([a-z-]+)`", line.split("|")[1])
    }
    made = set[str]().union(*(rules_in(ROOT / "skillrun" / module) for module in MODULES))
    everywhere = set[str]().union(*(rules_in(path) for path in (ROOT / "skillrun").rglob("*.py")))
    assert made - OF_THE_CALL <= told, f"not on the page: {made - OF_THE_CALL - told}"
    assert told <= everywhere, f"on the page and nowhere else: {told - everywhere}"
