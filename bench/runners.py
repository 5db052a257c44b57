"""Runners: the things compared, each in a process of its own with the same protocol, so that none is favoured.

`python runners.py KIND SCRIPT WORKSPACE` prints `ready`; for each line `COUNT AT_ONCE` on standard input it makes
COUNT runs of the script, AT_ONCE of them at the same time, and prints the seconds that took. This file imports
nothing before it knows its kind: a peer's own Python may not have skillrun.
"""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[[], object]

BWRAP = (
    "bwrap --unshare-all --die-with-parent --new-session --cap-drop ALL --ro-bind /usr /usr --symlink usr/bin /bin "
    "--symlink usr/lib /lib --symlink usr/lib64 /lib64 --proc /proc --dev /dev --tmpfs /tmp"
)


def plain(script: str, _: str) -> Run:
    """`subprocess.run`: no confinement, no deadline, nothing found out."""
    return lambda: subprocess.run([script], capture_output=True, check=True)


def bubblewrap(script: str, workspace: str) -> Run:
    """Bubblewrap with every namespace and the fewest binds."""
    command = [*BWRAP.split(), "--ro-bind", script, script, "--bind", workspace, workspace, script]
    return lambda: subprocess.run(command, capture_output=True, check=True)


def sandbox_runtime(script: str, workspace: str) -> Run:
    """Anthropic's sandbox-runtime, by its command, as it has no Python."""
    srt = str(Path(__file__).parent / ".npm/node_modules/.bin/srt")
    return lambda: subprocess.run([srt, "-c", script], capture_output=True, check=True, cwd=workspace)


def sandlock(script: str, workspace: str) -> Run:
    """Sandlock in process, with the system and the script readable and the workspace writable."""
    from sandlock import Sandbox  # type: ignore[import-not-found] # noqa: PLC0415 - in its own Python only

    readable = ["/usr", "/lib", "/lib64", "/bin", "/etc", str(Path(script).parent)]

    def run() -> None:
        result = Sandbox(fs_readable=readable, fs_writable=[workspace]).run([script])
        assert result.success, result

    return run


def agno(script: str, workspace: str) -> Run:
    """Use the script runner of agno: `subprocess.run` with a deadline."""
    from agno.skills.utils import run_script  # type: ignore[import-not-found] # noqa: PLC0415 - see above

    def run() -> None:
        result = run_script(Path(script), cwd=Path(workspace))
        assert result.returncode == 0, result

    return run


def pydantic_ai_skills(script: str, _: str) -> Run:
    """Use the local executor of pydantic-ai-skills, a loop of asyncio for each run as in a synchronous program."""
    import asyncio  # noqa: PLC0415 - see above

    from pydantic_ai_skills import LocalSkillScriptExecutor  # type: ignore[import-not-found] # noqa: PLC0415 - see above
    from pydantic_ai_skills.local import FileBasedSkillScript  # type: ignore[import-not-found] # noqa: PLC0415 - see above

    executor = LocalSkillScriptExecutor()
    found = FileBasedSkillScript(
        name="true.sh", description="d", uri=script, function=None, executor=executor
    )
    return lambda: asyncio.run(executor.run(found))


def skillrun(script: str, workspace: str, level: int) -> Run:
    """Skillrun at one level: find, decide, confine, run, look at what is left."""
    from skillrun import Runner, current_host  # noqa: PLC0415 - see above

    folder = Path(script).parents[1]
    runner = Runner(
        workspace=Path(workspace),
        skills=[folder.parent],
        host=current_host(),
        backend=f"linux-{level}",
        at_once=64,
    )
    skill = runner.find(folder)

    def run() -> None:
        result = runner.run(skill)
        assert result.ok, result.error

    return run


KINDS: dict[str, Callable[[str, str], Run]] = {
    "subprocess.run": plain,
    "bubblewrap": bubblewrap,
    "sandbox-runtime": sandbox_runtime,
    "sandlock": sandlock,
    "agno": agno,
    "pydantic-ai-skills": pydantic_ai_skills,
    "skillrun level 1": lambda script, workspace: skillrun(script, workspace, 1),
    "skillrun level 2": lambda script, workspace: skillrun(script, workspace, 2),
}


def serve(run: Run) -> None:
    """Make runs as standard input asks for them."""
    run()
    print("ready", flush=True)
    with ThreadPoolExecutor(64) as pool:
        for line in sys.stdin:
            count, at_once = map(int, line.split())
            gates = [count // at_once + (number < count % at_once) for number in range(at_once)]
            began = time.perf_counter()
            if at_once == 1:
                for _ in range(count):
                    run()
            else:
                for done in [pool.submit(lambda n: [run() for _ in range(n)], n) for n in gates]:
                    done.result()
            print(time.perf_counter() - began, flush=True)


if __name__ == "__main__":
    serve(KINDS[sys.argv[1]](sys.argv[2], sys.argv[3]))
