"""Run the public conformance suite and the inspector against `skillrun mcp`: `python run.py NODE_BIN`.

NODE_BIN is a folder with Node 22 and both programs; `make conformance` makes it.
"""

from __future__ import annotations

import itertools
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
EXTENSION = ("sep-2640-skills-enumeration", "sep-2640-skills-manifest", "sep-2640-skills-directory")


def free_port() -> int:
    """Find a port that nobody has."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    """Wait until something listens."""
    while server.poll() is None:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise SystemExit("the server did not start")


def suite(node: Path, port: int, environ: dict[str, str]) -> int:
    """Run both eras and the Skills extension."""
    url = f"http://127.0.0.1:{port}/mcp"
    common = [node / "conformance", "server", "--url", url, "--timeout", "60000"]
    baseline = ["--expected-failures", HERE / "expected-failures.yaml"]
    with tempfile.TemporaryDirectory() as out:
        runs = [
            *([*common, "--requirements", era, *baseline, "-o", out] for era in ("2026-07-28", "2025-11-25")),
            *([*common, "--scenario", name, "-o", out] for name in EXTENSION),
        ]
        codes = [subprocess.run(run, env=environ, check=False).returncode for run in runs]
    print(f"conformance: {codes}")
    return max(codes)


def inspector(node: Path, port: int, environ: dict[str, str]) -> int:
    """Look at the real command, and at the served port, through the inspector, in both eras."""
    codes = []
    server = [sys.executable, "-m", "skillrun", "mcp", "--skills", HERE / "skills", "--workspace"]
    served = [f"http://127.0.0.1:{port}/mcp", "--transport", "http"]
    with tempfile.TemporaryDirectory() as workspace:
        stdio = ("stdio", [*server, workspace], "everything__test_simple_text")
        http = ("http", served, "test_simple_text")
        for (transport, words, tool), era in itertools.product((stdio, http), ("legacy", "modern")):
            common = [node / "mcp-inspector", "--cli", *words, "--protocol-era", era]
            looks = [
                ["--method", "tools/list", "--strict"],
                ["--method", "tools/call", "--tool-name", tool],
            ]
            if era == "modern":
                looks.append(["--method", "skills/list", "--verify"])
            for look in looks:
                done = subprocess.run(
                    [*common, *look], env=environ, check=False, capture_output=True, text=True
                )
                codes.append(done.returncode)
                print(f"inspector {transport} {era} {' '.join(look)}: {done.returncode}")
                if done.returncode:
                    print(done.stdout[-2000:], done.stderr[-2000:])
    return max(codes)


def main() -> int:
    """Run everything and return the worst exit code."""
    node = Path(sys.argv[1]).resolve()
    environ = {**os.environ, "PATH": f"{node}:{os.environ['PATH']}"}
    port = free_port()
    server = subprocess.Popen([sys.executable, HERE / "serve.py", str(port)])
    try:
        wait_for(port, server)
        return max(suite(node, port, environ), inspector(node, port, environ))
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    sys.exit(main())
