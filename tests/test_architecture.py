"""The direction of imports: a room imports only rooms above it (ARCHITECTURE.md, "Rooms").

Read from the syntax trees of every module, so that imports inside functions and under TYPE_CHECKING count too.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(__file__).resolve().parent.parent / "skillrun"

# From the top down. What stands on one line may import one another.
ROOMS: tuple[frozenset[str], ...] = (
    frozenset({"errors", "problem", "resources", "host", "redact", "log"}),
    frozenset({"skills"}),
    frozenset({"permissions"}),
    frozenset({"sandbox"}),
    frozenset({"confine"}),
    frozenset({"launch"}),
    frozenset({"roots", "running", "runner"}),
    frozenset({"tools"}),
    frozenset({"conversation"}),
    frozenset({"check"}),
    frozenset({"report"}),
    frozenset({"mcp"}),
    frozenset({"cli"}),
)
DEPTH = {room: depth for depth, rooms in enumerate(ROOMS) for room in rooms}

# The package itself says its version and lends the names of the library, so it may import all but the programs.
FRONT = "__init__"
PROGRAMS = frozenset({"mcp", "cli"})

# What the SDK of MCP is made of and brings along; for the room that is built on it, and no other.
SDK = frozenset({"anyio", "mcp", "mcp_types", "pydantic", "starlette", "uvicorn"})
DOORS = frozenset({Path("cli/mcp.py"), Path("cli/mcp_run.py")})

DEPENDENCIES = frozenset({"click", "jinja2", "jsonschema", "psutil", "yaml"})
# Parts of the standard library whose names differ between versions (sha256 without OpenSSL).
STDLIB = sys.stdlib_module_names | {"_sha2", "_sha256"}


@dataclass(frozen=True, slots=True)
class Import:
    """One import: `target` is the full dotted name, `lazy` whether it stands inside a function."""

    module: Path
    line: int
    target: str
    lazy: bool

    @property
    def where(self) -> str:
        """The place, as a person looks it up."""
        return f"{self.module}:{self.line}"


def absolute(node: ast.ImportFrom, package: tuple[str, ...]) -> str:
    """Write out a relative import; one that climbs out of the tree keeps a leading dot."""
    if node.level == 0:
        return node.module or ""
    base = package[: len(package) - node.level + 1]
    return ".".join((*base, *([node.module] if node.module else []))) if base else f".{node.module or ''}"


def called_by_name(node: ast.Call) -> str | None:
    """Return what `importlib.import_module("name")` or `__import__("name")` imports."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
    if name not in {"import_module", "__import__"} or not node.args:
        return None
    first = node.args[0]
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else "?"


def targets(node: ast.AST, package: tuple[str, ...], root: Path) -> Iterator[str]:
    """Yield the modules that one node imports.

    A submodule named by `from package import` is itself the target. So is a name that the package lends out
    (`skillrun.Runner`): it comes from a room, and only the version comes from the package itself.
    """
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = absolute(node, package)
        folder = root.parent.joinpath(*base.split("."))
        for alias in node.names:
            is_module = (folder / alias.name).is_dir() or (folder / f"{alias.name}.py").is_file()
            is_lent = base == root.name and alias.name != "__version__"
            yield f"{base}.{alias.name}" if is_module or is_lent else base
    elif isinstance(node, ast.Call) and (name := called_by_name(node)) is not None:
        yield name


def imports(root: Path) -> Iterator[Import]:
    """Yield every import of every module below a package."""
    for path in sorted(root.rglob("*.py")):
        package = path.relative_to(root.parent).parent.parts
        pending: list[tuple[ast.AST, bool]] = [(ast.parse(path.read_bytes(), str(path)), False)]
        while pending:
            node, lazy = pending.pop()
            for target in targets(node, package, root):
                yield Import(path.relative_to(root), getattr(node, "lineno", 0), target, lazy)
            inside = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            pending += [(child, inside) for child in ast.iter_child_nodes(node)]


def room_of(module: Path) -> str:
    """Name the room of a module, by its path below the package."""
    return module.parts[0].removesuffix(".py")


def touches_mcp(found: Import) -> bool:
    """Whether an import reaches our MCP room or the `mcp` package."""
    return found.target.split(".")[0] in SDK or found.target.split(".")[:2] == ["skillrun", "mcp"]


def complain_direction(room: str, target: str) -> str | None:
    """Say what is wrong with an import inside skillrun."""
    other = (target.split(".")[1:] or [FRONT])[0]
    if room == FRONT:
        return f"the package imports the program {other}" if other in PROGRAMS else None
    if other in {room, FRONT}:
        return None
    if other not in DEPTH:
        return None if room in PROGRAMS else f"{room} imports {target}, and {other} is not a room"
    return f"{room} imports {other}, which is below it" if DEPTH[other] > DEPTH[room] else None


def complain(found: Import) -> str | None:
    """Say what is wrong with one import, or nothing."""
    room, top = room_of(found.module), found.target.split(".")[0]
    if found.target == "?":
        return "imports a module by a computed name, which nobody can check"
    if room == "confine":
        inside = found.target.split(".")[:2] == ["skillrun", "confine"] or top == "confine"
        return None if inside or top in STDLIB else f"the far side of the fork imports {found.target}"
    if touches_mcp(found):
        door = found.module in DOORS and found.lazy and found.target.split(".")[0] not in SDK
        allowed = room == "mcp" or door
        if not allowed:
            return "only cli/mcp.py and cli/mcp_run.py touch skillrun.mcp, and only inside a function"
    if room == "mcp" and top in SDK:
        return None
    if top != "skillrun":
        return None if top in STDLIB | DEPENDENCIES else f"{top} is not a dependency of skillrun"
    return complain_direction(room, found.target)


def violations(root: Path) -> list[str]:
    """List every import that goes the wrong way, and every module that belongs to no room."""
    strangers = {
        f"{path.relative_to(root)}: belongs to no room"
        for path in root.rglob("*.py")
        if room_of(path.relative_to(root)) not in {*DEPTH, FRONT, "__main__"}
    }
    wrong = [
        f"{found.where}: {reason}"
        for found in imports(root)
        if room_of(found.module) in {*DEPTH, FRONT} and (reason := complain(found)) is not None
    ]
    return sorted(strangers) + sorted(wrong)


def tree(root: Path, module: str, text: str) -> Path:
    """Make a package with every room in it, and write one module."""
    package = root / "skillrun"
    for room in DEPTH:
        (package / room).mkdir(parents=True)
        (package / room / "__init__.py").write_text("")
    (package / "__init__.py").write_text("")
    (package / module).write_text(text)
    return package


def test_every_import_goes_up() -> None:
    """No module of skillrun imports a room below its own."""
    assert violations(PACKAGE) == []


def test_the_tree_was_really_read() -> None:
    """The check above looked at modules: the rooms that exist from the first day are among them."""
    seen = {room_of(found.module) for found in imports(PACKAGE)}
    assert {"errors", "skills", "permissions", "confine"} <= seen


def test_the_rooms_are_those_of_the_architecture_page() -> None:
    """ARCHITECTURE.md lists the same rooms in the same order."""
    section = (PACKAGE.parent / "ARCHITECTURE.md").read_text().split("## Rooms")[1]
    first_columns = [line.split("  ")[0] for line in section.split("```")[1].strip().splitlines()]
    listed = tuple(
        frozenset(name.removesuffix(".py").removesuffix("/") for name in names.split(", "))
        for names in first_columns
    )
    assert listed == ROOMS


@pytest.mark.parametrize(
    ("module", "text", "reason"),
    [
        ("skills/read.py", "from skillrun.permissions import grant", "skills imports permissions"),
        ("skills/read.py", "import skillrun.launch", "skills imports launch"),
        ("skills/read.py", "from skillrun import runner", "skills imports runner"),
        ("skills/read.py", "from .. import runner", "skills imports runner"),
        ("skills/read.py", "from ..permissions import grant", "skills imports permissions"),
        ("permissions/grant.py", "def late():\n    from skillrun.cli import main", "permissions imports cli"),
        (
            "skills/read.py",
            "if TYPE_CHECKING:\n    from skillrun.launch import Result",
            "skills imports launch",
        ),
        (
            "launch/client.py",
            "import importlib\nimportlib.import_module('skillrun.cli')",
            "launch imports cli",
        ),
        ("launch/client.py", "__import__(name)", "computed name"),
        ("skills/read.py", "import requests", "requests is not a dependency"),
        ("skills/read.py", "from skillrun.helpers import x", "helpers is not a room"),
        ("launch/client.py", "from skillrun import Runner", "Runner is not a room"),
        ("confine/child.py", "import skillrun", "far side of the fork imports skillrun"),
        (
            "confine/child.py",
            "from skillrun.problem import At",
            "far side of the fork imports skillrun.problem",
        ),
        ("confine/child.py", "from ..problem import At", "far side of the fork imports skillrun.problem"),
        ("confine/child.py", "def f():\n    import psutil", "far side of the fork imports psutil"),
        ("cli/run.py", "def f():\n    import mcp", "only cli/mcp.py"),
        ("cli/mcp.py", "def f():\n    import anyio", "only cli/mcp.py"),
        ("tools/box.py", "import mcp_types", "only cli/mcp.py"),
        ("mcp/server.py", "import requests", "requests is not a dependency"),
        ("cli/run.py", "from skillrun.mcp import server", "only cli/mcp.py"),
        ("cli/mcp.py", "from skillrun import mcp", "only inside a function"),
        ("__init__.py", "from skillrun.cli import main", "the package imports the program cli"),
        ("utils.py", "", "belongs to no room"),
    ],
)
def test_a_planted_violation_is_caught(tmp_path: Path, module: str, text: str, reason: str) -> None:
    """Each way to break the direction is reported, with the file it stands in."""
    found = violations(tree(tmp_path, module, text))
    assert len(found) == 1
    assert found[0].startswith(f"{module}:")
    assert reason in found[0]


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("permissions/grant.py", "from skillrun.skills import model\nfrom skillrun.errors import UsageError"),
        ("skills/read.py", "from skillrun.skills import model\nfrom . import model\nimport yaml, json"),
        (
            "confine/child.py",
            "import os\nfrom . import calls\nfrom confine.warden import main\nfrom _sha2 import sha256",
        ),
        ("cli/mcp.py", "def f():\n    from skillrun.mcp import server"),
        ("cli/mcp_run.py", "def f():\n    from skillrun.mcp import command"),
        ("mcp/server.py", "import mcp, mcp_types, anyio\nfrom skillrun.tools import Toolbox"),
        ("cli/main.py", "from skillrun import Runner"),
        ("report/sarif.py", "from skillrun import __version__"),
        ("__init__.py", "from skillrun.runner import Runner"),
    ],
)
def test_what_is_allowed_is_not_reported(tmp_path: Path, module: str, text: str) -> None:
    """Imports that go up, inside a room, or to a dependency are fine."""
    assert violations(tree(tmp_path, module, text)) == []
