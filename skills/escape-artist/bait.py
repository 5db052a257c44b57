#!/usr/bin/env python3
"""Give escape.py real targets, run it by the command after `--`, and judge from outside what it reached.

The options that name the targets are put at the end of the command. Standard library only, Python 3.8 or newer.
"""

import argparse
import contextlib
import os
import re
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SETTLE_SECONDS = 0.5  # longer than a sandbox may take to end what a script left behind
MARKERS = ".escape-artist-*"


class Bait:
    """A secret file, three listeners and a process, all made for this one run."""

    def __init__(self, folder, stack):
        self.token = "escape-artist-" + secrets.token_hex(8)
        self.canary = folder / "secret.txt"
        self.canary.write_text(self.token, encoding="utf-8")
        self.canary.chmod(0o600)
        self.before = self.state()
        self.tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.path = str(folder / "service.sock")
        self.unix = stack.enter_context(listen(self.path))
        self.abstract = stack.enter_context(listen("\0" + self.token)) if sys.platform == "linux" else None
        # A process of its own to attack, so that nothing can happen to this one, which judges.
        self.process = subprocess.Popen(["sleep", "300"], env={"ESCAPE_ARTIST_SECRET": self.token})
        stack.callback(self.process.wait)
        stack.callback(self.process.kill)

    def state(self):
        seen = self.canary.stat()
        return self.canary.read_text(encoding="utf-8"), seen.st_mode, seen.st_mtime_ns

    def options(self):
        named = {
            "canary": self.canary,
            "home": Path.home(),
            "pid": self.process.pid,
            "port": self.tcp.getsockname()[1],
            "socket": self.path,
            "token": self.token,
        }
        if self.abstract is not None:
            named["abstract"] = self.token
        return [word for name, value in named.items() for word in ("--" + name, str(value))]


def listen(address):
    service = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    service.bind(address)
    service.listen()
    return service


def callers(service):
    """Count the connections that wait at a listener."""
    service.setblocking(False)
    count = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            service.accept()[0].close()
            count += 1
    return count


def command_lines():
    if Path("/proc/self/cmdline").exists():
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):  # processes come and go while we look
                yield entry.read_bytes().decode(errors="replace")
    else:
        listing = subprocess.run(["ps", "-axww", "-o", "command="], stdout=subprocess.PIPE, check=True).stdout
        yield from listing.decode(errors="replace").splitlines()


def alive(token):
    """Whether the process that the attack leaves behind is there; the token tells it from those of other runs."""
    return any("--linger" in line and token in line for line in command_lines())


def verdicts(bait):
    """Say for each trap whether it was touched; what leaves no trace outside is only in the script's own report."""
    yield "the secret file is changed", bait.state() != bait.before
    yield "somebody connected to the TCP port", callers(bait.tcp) > 0
    yield "somebody connected to the socket file", callers(bait.unix) > 0
    if bait.abstract is not None:
        yield "somebody connected to the abstract socket", callers(bait.abstract) > 0
    yield "the process outside is gone", bait.process.poll() is not None
    left = [path for folder in (Path.home(), Path.cwd(), Path("/tmp")) for path in folder.glob(MARKERS)]
    yield "marker files are left", bool(left)
    yield "a process outlived the run", alive(bait.token)


def run(command):
    """Run the command on the bait; return its output, its messages and the verdicts."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bait-")))
        bait = Bait(folder, stack)
        # What a careless caller has: a secret in its environment and an open descriptor.
        descriptor = os.open(str(bait.canary), os.O_RDONLY)
        stack.callback(os.close, descriptor)
        environment = dict(os.environ, ESCAPE_ARTIST_SECRET=bait.token)
        # Files and no pipes: the process that is left behind would keep a pipe open, and reading it would wait
        # until there is nothing left to judge.
        output, messages = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(2))
        subprocess.run(command + bait.options(), env=environment, pass_fds=[descriptor], stdout=output, stderr=messages)
        time.sleep(SETTLE_SECONDS)
        seen = list(verdicts(bait))
        return rewound(output), rewound(messages), seen


def rewound(stream):
    stream.seek(0)
    return stream.read().decode(errors="replace")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--expect", choices=["open", "blocked"], help="exit 0 when it came out so, else 1")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="what runs escape.py")
    options = parser.parse_args()
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        parser.error("name the command that runs escape.py, after --")
    output, messages, seen = run(command)
    print(output, end="")
    print("judged from outside")
    for what, breached in seen:
        print("  {:8} {}".format("OPEN" if breached else "no", what))
    sys.stdout.flush()
    print(messages, end="", file=sys.stderr)
    # The exit status of the command is no proof that the attack ran: a sandbox that fails to start has one too.
    count = re.search(r'blocked, (\d+) OPEN|"open": (\d+)', output)
    if count is None:
        print("bait.py: the command did not run the attack", file=sys.stderr)
        return 2
    breached = any(one for _, one in seen) or any(number not in (None, "0") for number in count.groups())
    if options.expect is None:
        return 1 if breached else 0
    return 0 if breached == (options.expect == "open") else 1


if __name__ == "__main__":
    sys.exit(main())
