"""For each rule a collection that it flags, and one that is nearly the same and that it does not."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from collection import Collection

PY = "#!/usr/bin/env python3\n"
SH = "#!/bin/sh\n"
WIDE = 'sandbox: {fs_read: ["${workspace}"], fs_write: ["${workspace}/out/"], network: true, env: [TOKEN]}\n'


@dataclass(frozen=True)
class Case:
    """How to make the collection that is flagged, and the near miss; the ceiling that both are checked under."""

    flagged: Callable[[Collection], object]
    near: Callable[[Collection], object]
    ceiling: str | None = None


def one(
    front: str = "", scripts: dict[str, str] | None = None, body: str = ""
) -> Callable[[Collection], object]:
    """Make one skill."""
    return lambda collection: collection.skill("demo", front, scripts, body)


def raw(text: str, name: str = "SKILL.md") -> Callable[[Collection], object]:
    """Write a SKILL.md as it is."""
    return lambda collection: collection.write(f"skills/demo/{name}", text)


def several(*parts: tuple[str, str]) -> Callable[[Collection], object]:
    """Make several skills."""
    return lambda collection: [collection.skill(name, front) for name, front in parts]


def linked(target: str) -> Callable[[Collection], object]:
    """Make a skill with a link in it."""

    def make(collection: Collection) -> None:
        folder = collection.skill("demo")
        (folder / "data.txt").write_text("x")
        (folder / "link").symlink_to(target)

    return make


def mode(bits: int) -> Callable[[Collection], object]:
    """Make a skill with a script of these modes."""

    def make(collection: Collection) -> None:
        folder = collection.skill("demo", scripts={"run.sh": SH})
        (folder / "scripts" / "run.sh").chmod(bits)
        for path in (folder, folder / "scripts", folder / "SKILL.md"):
            path.chmod(0o755)

    return make


def with_file(name: str, front: str) -> Callable[[Collection], object]:
    """Make a skill that has `templates`, and perhaps the project has it too."""

    def make(collection: Collection) -> None:
        folder = collection.skill("demo", front)
        (folder / "templates").mkdir()
        if name:
            (collection.folder / name).mkdir()

    return make


def deep(levels: int) -> Callable[[Collection], object]:
    """Make a skill so many folders below the root."""
    return lambda collection: (
        collection.skill("demo"),
        collection.skill("/".join(["a"] * (levels - 1) + ["deep"])),
    )


def ceiling_with(line: str) -> Callable[[Collection], object]:
    """Make a skill, a ceiling of the project, and a link in the workspace that leads out of it."""

    def make(collection: Collection) -> None:
        collection.skill("demo")
        collection.write("skillrun.yaml", f"sandbox: {{fs_read: [{line}]}}\n")
        (collection.folder / "data").mkdir()
        (collection.folder / "away").symlink_to(os.path.join("..", "elsewhere"))  # noqa: PTH118 - text of a link

    return make


CASES: dict[str, Case] = {
    "skill-unreadable": Case(
        raw("---\nname: demo\ndescription: a: b\n---\n"), raw('---\nname: demo\ndescription: "a: b"\n---\n')
    ),
    "request-invalid": Case(one("fs_read: 5\n"), one('fs_read: ["./data"]\n'), "default"),
    "near-key": Case(one("fs_reads: [x]\n"), one("reads: [x]\n")),
    "request-unread": Case(one("permissions: {fs_read: [x]}\n"), one("permissions: {files: [x]}\n")),
    "script-unparsable": Case(
        one(scripts={"run.py": f"{PY}def (:\n"}), one(scripts={"run.py": f"{PY}def f(): ...\nf()\n"})
    ),
    "not-checked": Case(deep(7), deep(6)),
    "request-refused": Case(one('fs_read: ["/etc/app"]\n'), one('fs_read: ["./etc/app"]\n')),
    "request-narrowed": Case(one("timeout: 600\n"), one("timeout: 60\n")),
    "broad-request": Case(one('fs_write: ["."]\n'), one('fs_write: ["./out/"]\n')),
    "exfiltration-pair": Case(
        one('fs_read: ["."]\nnetwork: true\n'), one('fs_read: ["./data"]\nnetwork: true\n')
    ),
    "flow": Case(
        several(
            ("writer", 'fs_read: ["./private"]\nfs_write: ["./out/"]\n'),
            ("sender", 'fs_read: ["./out/"]\nnetwork: true\n'),
        ),
        # The sender reads what the writer knows anyway, so nothing is gained by going through the other.
        several(
            ("writer", 'fs_read: ["./out/"]\nfs_write: ["./out/"]\n'),
            ("sender", 'fs_read: ["./out/"]\nnetwork: true\n'),
        ),
        "wide.yaml",
    ),
    "unlisted-trust": Case(one("trust: core\n"), one("trust: external\n")),
    "refused-variable": Case(
        one("metadata: {skillrun: {env: [LD_PRELOAD]}}\n"),
        one("metadata: {skillrun: {env: [TOKEN]}}\n"),
        "wide.yaml",
    ),
    "path-in-skill-only": Case(
        with_file("", 'fs_read: ["./templates"]\n'), with_file("templates", 'fs_read: ["./templates"]\n')
    ),
    "undeclared-network": Case(
        one(
            "network: [api.example.com]\n",
            {"run.py": f"{PY}import requests\nrequests.get('https://other.example.com/x')\n"},
        ),
        one(
            "network: [api.example.com]\n",
            {"run.py": f"{PY}import requests\nrequests.get('https://api.example.com/x')\n"},
        ),
        "wide.yaml",
    ),
    "unused-network": Case(
        one("network: [api.example.com]\n", {"run.sh": f"{SH}echo curl\n"}),
        one("network: [api.example.com]\n", {"run.sh": f"{SH}curl https://api.example.com\n"}),
        "wide.yaml",
    ),
    "undeclared-read": Case(
        one('fs_read: ["./data"]\n', {"run.py": f"{PY}open('other/x.txt')\n"}),
        one('fs_read: ["./data"]\n', {"run.py": f"{PY}open('data/x.txt')\n"}),
    ),
    "undeclared-write": Case(
        one("fs_write: [./out/]\n", {"run.sh": f"{SH}echo x > report.txt\n"}),
        one("fs_write: [./out/]\n", {"run.sh": f"{SH}echo x > out/report.txt\n"}),
    ),
    "undeclared-home": Case(
        one(
            scripts={
                "run.py": f"{PY}from pathlib import Path\n(Path.home() / '.claude' / 'x.json').read_text()\n"
            }
        ),
        one(scripts={"run.py": f"{PY}from pathlib import Path\nprint(Path.home() / '.claude' / 'x.json')\n"}),
    ),
    "write-to-skill": Case(
        one(scripts={"run.py": f"{PY}from pathlib import Path\n(Path(__file__).parent / 'cache').mkdir()\n"}),
        one(
            scripts={"run.py": f"{PY}from pathlib import Path\n(Path(__file__).parent / 'cache').iterdir()\n"}
        ),
    ),
    "undeclared-env": Case(
        one("metadata: {skillrun: {env: [TOKEN]}}\n", {"run.py": f"{PY}import os\nos.environ['OTHER']\n"}),
        one("metadata: {skillrun: {env: [TOKEN]}}\n", {"run.py": f"{PY}import os\nos.environ['TOKEN']\n"}),
    ),
    "undeclared-program": Case(
        one(scripts={"run.sh": f"{SH}ffmpeg -i a b\n"}),
        one("compatibility: needs ffmpeg\n", {"run.sh": f"{SH}ffmpeg -i a b\n"}),
    ),
    "link-out": Case(linked("/etc/passwd"), linked("data.txt")),
    "loose-modes": Case(mode(0o777), mode(0o755)),
    "interpreter-missing": Case(
        one(scripts={"run.py": "#!/home/me/venv/bin/python\n"}), one(scripts={"run.sh": "#!/bin/sh\n"})
    ),
    "windows-line-end": Case(
        one(scripts={"run.sh": "#!/bin/sh\r\necho\r\n"}), one(scripts={"run.sh": "#!/bin/sh\necho\r\n"})
    ),
    "ignore-without-reason": Case(
        one("timeout: 600 # skillrun: ignore[request-narrowed]\n"),
        one("timeout: 600 # skillrun: ignore[request-narrowed] the ceiling of our CI is wider\n"),
    ),
    "ignore-unused": Case(
        one("timeout: 60 # skillrun: ignore[request-narrowed] the ceiling of our CI is wider\n"),
        one("timeout: 600 # skillrun: ignore[request-narrowed] the ceiling of our CI is wider\n"),
    ),
    "ceiling-idle": Case(ceiling_with("./away"), ceiling_with("./data")),
    "spec-name": Case(
        raw("---\nname: Demo Skill\ndescription: x\n---\n"), raw("---\nname: demo\ndescription: x\n---\n")
    ),
    "spec-description": Case(raw("---\nname: demo\n---\n"), raw("---\nname: demo\ndescription: x\n---\n")),
    "spec-unknown-key": Case(one("version: 1\n"), one("metadata: {version: 1}\n")),
    "same-key": Case(several(("a/demo", ""), ("b/demo", "")), several(("a/demo", ""), ("b/other", ""))),
    "nested-skill": Case(several(("demo", ""), ("demo/inner", "")), several(("demo", ""), ("inner", ""))),
}
"""Rules that are not here have tests of their own: lock, baseline, policy, and what no other rule names."""
ELSEWHERE = frozenset({
    "policy-changed", "not-locked", "lock-permission", "lock-file", "lock-stale", "baseline-stale", "other-problem",
})  # fmt: skip
