"""Fixtures of the conversation tests: stores, a machine whose time a test sets, skills to run, vendors to talk to."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from skillrun.conversation.sqlite import SqliteStore
from skillrun.conversation.store import MemoryStore, Store
from skillrun.host import Host
from skillrun.runner import Runner
from skillrun.tools.box import Toolbox

sys.path.insert(0, str(Path(__file__).parent))

from battle import SEED, Battle
from model_server import ModelServer
from talking import Machine

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Give a store of each kind."""
    made: Store = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "state" / "c.db")
    yield made
    made.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Give the place of a SQLite store."""
    return tmp_path / "state" / "conversations.db"


@pytest.fixture
def machine() -> Machine:
    """Give a machine whose processes and time a test sets."""
    return Machine()


@dataclass
class Workplace:
    """A workspace whose skills a test writes, and the runners over it."""

    workspace: Path
    home: Path
    runners: list[Runner] = field(default_factory=list)

    def skill(self, name: str, script: str, *, front: str = "") -> Path:
        """Write a skill with one script `act.py`."""
        folder = self.workspace / "skills" / name
        (folder / "scripts").mkdir(parents=True, exist_ok=True)
        told = f"---\nname: {name}\ndescription: The skill {name}.\n{textwrap.dedent(front)}---\n"
        (folder / "SKILL.md").write_text(told)
        (folder / "scripts" / "act.py").write_text("#!/usr/bin/env python3\n" + textwrap.dedent(script))
        return folder

    @property
    def ceiling(self) -> Path:
        """The operator's file."""
        return self.home / "ceiling.yaml"

    def runner(self, ceiling: str | None = None, *, workspace: Path | None = None) -> Runner:
        """Make a runner; `ceiling` is the text of the operator's file."""
        if ceiling is not None:
            self.ceiling.write_text(textwrap.dedent(ceiling))
        made = Runner(
            workspace=workspace or self.workspace,
            skills=[self.workspace / "skills"],
            ceiling=self.ceiling if self.ceiling.exists() else "default",
            host=Host(home=self.home, environ={"PATH": "/usr/bin:/bin"}, state=self.home / "state"),
        )
        self.runners.append(made)
        return made

    def box(self, ceiling: str | None = None, **settings: Any) -> Toolbox:
        """Return a toolbox with all skills."""
        return Toolbox(runner=self.runner(ceiling), **settings)


@pytest.fixture
def workplace(tmp_path: Path) -> Iterator[Workplace]:
    """Give an empty workspace and end its runners."""
    made = Workplace(tmp_path.resolve() / "work", tmp_path.resolve() / "home")
    made.workspace.mkdir()
    made.home.mkdir()
    yield made
    for runner in made.runners:
        runner.close()


@pytest.fixture(scope="module")
def nursery() -> Iterator[subprocess.Popen[str]]:
    """Give a process that forks workers; see `nursery.py`."""
    program = [sys.executable, str(Path(__file__).parent / "nursery.py")]
    made = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert made.stdin is not None
    assert made.stdout is not None
    yield made
    made.stdin.close()
    made.wait(20)
    made.stdout.close()


@pytest.fixture
def battle(file: Path, nursery: subprocess.Popen[str]) -> Iterator[Battle]:
    """Give a store and a nursery, and end all workers."""
    print("SKILLRUN_SEED =", SEED)
    made = Battle(file, nursery)
    yield made
    made.close()


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """Give a server whose answers a test writes."""
    made = ModelServer()
    running = made.start()
    yield made
    running.shutdown()
    running.server_close()


@pytest.fixture
def clients(server: ModelServer) -> Iterator[dict[str, Any]]:
    """Give the real clients, each bound to the server."""
    anthropic = pytest.importorskip("anthropic", reason="the Anthropic SDK is not installed")
    openai = pytest.importorskip("openai", reason="the OpenAI SDK is not installed")
    with (
        anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0) as first,
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as second,
    ):
        yield {"anthropic": first, "openai": second, "openai-responses": second}
