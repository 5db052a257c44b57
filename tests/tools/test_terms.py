"""Terms: everything that a person agrees to is in the digest, each part by itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from skillrun.permissions.grant import Capability, Denied, Item, Requirement, Unconfined
from skillrun.problem import At
from skillrun.tools.terms import TermsChangedError, agreed, of_ready, terms_of
from skillrun.tools.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import World

    from skillrun.launch.ready import Ready
    from skillrun.tools.script_tool import ScriptTool

SCRIPT = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--what')\np.parse_args()\n"
AT = At(Path("/elsewhere"))


def grant(**parts: Any) -> Callable[[Ready], Ready]:
    """Return what puts other parts into the grant of a run."""
    return lambda ready: replace(ready, grant=replace(ready.grant, **parts))


def interpreter(ready: Ready) -> Ready:
    """Put another file behind the interpreter's name."""
    assert ready.subject.interpreter is not None
    other = replace(ready.subject.interpreter, real=Path("/elsewhere/python3"))
    return replace(ready, subject=replace(ready.subject, interpreter=other))


def script(ready: Ready) -> Ready:
    """Put another script in."""
    return replace(
        ready, subject=replace(ready.subject, script=replace(ready.subject.script, name="other.py"))
    )


CHANGES: dict[str, Callable[[Ready], Ready]] = {
    "version": lambda ready: replace(ready, digest="sha256:other"),
    "interpreter": interpreter,
    "script": script,
    "workspace": lambda ready: replace(ready, place=replace(ready.place, workspace=Path("/elsewhere"))),
    "granted": grant(granted=(Item(Capability.NETWORK, value=True, at=AT),)),
    "denied": grant(denied=(Denied(Path("/elsewhere"), "for a test", AT),)),
    "require": grant(require=Requirement.NONE),
    "unconfined": grant(unconfined=Unconfined.DISABLED),
}


@pytest.fixture
def tool(world: World) -> ScriptTool:
    """Give the tool of a script."""
    world.skill("demo", scripts={"go.py": SCRIPT})
    return world.tools()["demo__go"]


@pytest.mark.parametrize("part", CHANGES)
def test_each_part_of_a_run_is_in_the_digest(tool: ScriptTool, part: str) -> None:
    """One part alone that is another makes another digest, is shown, and is not what was agreed to."""
    ready = tool.preview({"what": "a"}).ready
    shown = of_ready(tool, {"what": "a"}, ready)
    other = CHANGES[part](ready)
    changed = of_ready(tool, {"what": "a"}, other)
    assert changed.digest != shown.digest
    assert {key for key in shown.about if shown.about[key] != changed.about[key]} == {part}
    with pytest.raises(TermsChangedError):
        agreed(tool, {"what": "a"}, shown.digest, other)
    agreed(tool, {"what": "a"}, shown.digest, ready)


def test_arguments_and_identity_are_in_the_digest(tool: ScriptTool) -> None:
    """The same run with other arguments, or of a tool that is another one by the same name, is another call."""
    ready = tool.preview({"what": "a"}).ready
    digest = of_ready(tool, {"what": "a"}, ready).digest
    assert of_ready(tool, {"what": "b"}, ready).digest != digest
    assert of_ready(tool, {}, ready).digest != digest
    for change in ({"root": "/x"}, {"folder": "/x"}, {"script": "x.py"}, {"subcommand": ("x",)}):
        own = tool.identity
        tool.identity = replace(own, **change)
        assert of_ready(tool, {"what": "a"}, ready).digest != digest, change
        tool.identity = own
    assert of_ready(tool, {"what": "a"}, ready).digest == digest


def test_the_scratch_folder_is_no_part_of_it(tool: ScriptTool) -> None:
    """Each run has another one, and it is the same right: the same call has the same digest every time."""
    assert terms_of(tool, {"what": "a"}) == terms_of(tool, {"what": "a"})


def test_a_tool_of_python_is_known_by_its_class_its_schema_and_its_arguments() -> None:
    """Another class of the same name, other parameters or other arguments are another call."""

    def made(parameters: dict[str, Any], module: str = "one") -> Tool:
        kind = type(
            "Refund",
            (Tool,),
            {"execute": lambda _, **given: given, "parameters": parameters, "__module__": module},
        )
        tool: Tool = kind()
        return tool

    first = terms_of(made({"order": {"type": "string"}}), {"order": "7"}).digest
    assert terms_of(made({"order": {"type": "string"}}), {"order": "7"}).digest == first
    assert terms_of(made({"order": {"type": "string"}}), {"order": "8"}).digest != first
    assert terms_of(made({"order": {"type": "integer"}}), {"order": "7"}).digest != first
    assert terms_of(made({"order": {"type": "string"}}, "two"), {"order": "7"}).digest != first
