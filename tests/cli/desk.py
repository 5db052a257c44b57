"""The desk: somebody's machine, with a home, a folder to stand in, and the real command to call there."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from press import press

if TYPE_CHECKING:
    from collections.abc import Mapping

_PYTHONS_OWN = ("PYTHON", "LANG", "LC_", "TZ")  # variables that Python reads when it starts
SKILLS = Path(__file__).resolve().parent.parent.parent / "skills"


@dataclass(frozen=True)
class Desk:
    """Somebody's machine: a home, a folder to stand in, and the real command to call there."""

    home: Path
    here: Path
    environ: Mapping[str, str] = field(default_factory=dict)

    def command(self, *words: str | os.PathLike[str]) -> list[str]:
        """Write the command line."""
        return [sys.executable, "-m", "skillrun", *map(os.fspath, words)]

    def environment(self, **more: str) -> dict[str, str]:
        """Return an environment that holds nothing of the machine that the tests run on."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return {
            **kept,
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home / ".config"),
            "XDG_STATE_HOME": str(self.home / ".state"),
            "COLUMNS": "100",
            "PYTHONDONTWRITEBYTECODE": "1",
            **self.environ,
            **more,
        }

    def __call__(
        self,
        *words: str | os.PathLike[str],
        stdin: str = "",
        cwd: Path | None = None,
        **more: str,
    ) -> subprocess.CompletedProcess[str]:
        """Run skillrun to its end; never with a traceback, whatever it was asked."""
        environ = self.environment(**more)
        folder = cwd or self.here
        if any(name.startswith(_PYTHONS_OWN) for name in {**self.environ, **more}):
            done = subprocess.run(
                self.command(*words), cwd=folder, env=environ, input=stdin, capture_output=True, text=True,
                errors="surrogateescape", check=False, timeout=60,
            )  # fmt: skip
        else:
            done = press().run([os.fspath(word) for word in words], cwd=folder, environ=environ, stdin=stdin)
        assert "Traceback" not in done.stderr + done.stdout, done.stderr
        assert "error[internal]" not in done.stderr, done.stderr
        return done

    def start(self, *words: str, **more: str) -> subprocess.Popen[str]:
        """Start skillrun as a shell starts a job: in a process group of its own."""
        return subprocess.Popen(
            self.command(*words),
            cwd=self.here,
            env=self.environment(**more),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def skill(self, key: str, script: str = "#!/bin/sh\n", *, front: str = "", root: str = "skills") -> Path:
        """Make a skill with one script, `main.sh`."""
        folder = self.here / root / key
        (folder / "scripts").mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {key}\ndescription: For a test.\n{front}---\n")
        (folder / "scripts" / "main.sh").write_text(script)
        return folder


def wait_for(path: Path, seconds: float = 20.0) -> str:
    """Wait until a file has a line, and return it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if path.exists() and path.read_text().endswith("\n"):
            return path.read_text().strip()
        time.sleep(0.02)
    raise AssertionError(f"{path} did not come")


class Sitting:
    """Somebody who sits at a terminal before one command: reads what it shows, and types."""

    def __init__(self, desk: Desk, *words: str, **more: str) -> None:
        self.told = ""
        self._outer, inner = pty.openpty()
        environ = desk.environment(TERM="xterm", NO_COLOR="1", **more)
        self._process = subprocess.Popen(
            desk.command(*words), cwd=desk.here, env=environ, stdin=inner, stdout=inner, stderr=inner,
            start_new_session=True,
        )  # fmt: skip
        os.close(inner)

    def until(self, text: str, seconds: float = 20.0) -> str:
        """Read until a text stands there that was not there before, and return what came."""
        end, start = time.monotonic() + seconds, len(self.told)
        while text not in self.told[start:]:
            assert time.monotonic() < end, f"no {text!r} came:\n{self.told}"
            if not self._read(0.1):
                raise AssertionError(f"it ended before {text!r} came:\n{self.told}")
        return self.told[start:]

    def type(self, line: str) -> None:
        """Type a line."""
        os.write(self._outer, line.encode() + b"\n")

    def close_input(self) -> None:
        """Press Ctrl-D."""
        os.write(self._outer, b"\x04")

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self._process.send_signal(signal.SIGINT)

    def end(self, seconds: float = 20.0) -> int:
        """Read to the end and return the exit code."""
        while self._read(seconds):
            pass
        os.close(self._outer)
        code = self._process.wait(seconds)
        assert "Traceback" not in self.told, self.told
        assert "error[internal]" not in self.told, self.told
        return code

    def _read(self, seconds: float) -> bool:
        if not select.select([self._outer], [], [], seconds)[0]:
            return True
        try:
            chunk = os.read(self._outer, 65536)
        except OSError:  # the other end is closed
            return False
        self.told += chunk.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(chunk)
