"""Set the limits of one run and become what runs it: where there is no launcher (macOS).

Started with `python -I -S`, an empty environment, the limits as `number:value` words, `--`, and the command. What
the command gets as environment comes as `NAME=VALUE` words before a second `--`.
"""

from __future__ import annotations

import os
import resource
import sys


def main(words: list[str]) -> None:
    """Set limits and execute. Exits with 126 when that is impossible."""
    end = words.index("--")
    for word in words[:end]:
        number, _, value = word.partition(":")
        _, hard = resource.getrlimit(int(number))
        most = int(value) if hard == resource.RLIM_INFINITY else min(int(value), hard)
        resource.setrlimit(int(number), (most, most))
    rest = words[end + 1 :]
    end = rest.index("--")
    environ = dict(word.split("=", 1) for word in rest[:end])
    command = rest[end + 1 :]
    try:
        os.execve(command[0], command, environ)  # noqa: S606 - what this program is for
    except OSError as problem:
        os.write(2, f"skillrun: {command[0]}: {problem.strerror}\n".encode())
        os._exit(126)


if __name__ == "__main__":
    main(sys.argv[1:])
