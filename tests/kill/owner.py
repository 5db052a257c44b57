"""A program that uses skillrun and will be killed: `owner.py`, told by a JSON object on stdin what to do.

`fork`: leave a forked copy of this process alive that holds every descriptor (as multiprocessing does).
It prints the process ids of itself, the launcher, the warden and the copy once the script is ready.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from arena import Arena, Background, launcher_pid, warden_pid


def main() -> None:
    """Run the script until somebody ends us."""
    order = json.load(sys.stdin)
    arena = object.__new__(Arena)
    arena.root, arena.token = Path(order["root"]), order["token"]
    runner = arena.runner(order["mode"])
    runner.launcher.start()
    copy = 0
    if order["fork"] == "before":
        copy = _copy()
    run = Background(runner, timeout=60)
    run.await_ready()
    if order["fork"] == "during":
        copy = _copy()
    pids = {
        "owner": os.getpid(),
        "launcher": launcher_pid(runner),
        "warden": warden_pid(runner),
        "copy": copy,
    }
    print(json.dumps(pids), flush=True)
    run.result(within=60)


def _copy() -> int:
    """Fork a copy that does nothing but live."""
    pid = os.fork()
    if pid == 0:
        os.close(1)
        time.sleep(60)
        os._exit(0)
    return pid


main()
