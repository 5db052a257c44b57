"""Node: what a JavaScript or TypeScript file does, from its tokens. Comments are left out, strings are kept."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from skillrun.check.static import network
from skillrun.check.static.use import Confidence, Kind, Reading, Use

if TYPE_CHECKING:
    from collections.abc import Iterator

# Strings first, so that a `//` in an address is no comment; a regular expression with a quote in it can mislead this.
_TOKEN = re.compile(
    r"'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|`(?:\\.|[^`\\])*`|//[^\n]*|/\*.*?\*/", re.DOTALL
)
_MODULE = re.compile(
    r"(?:\brequire\s*\(\s*|\bimport\s*\(\s*|\bfrom\s+|^\s*import\s+)(['\"])(?P<name>[^'\"\n]+)\1",
    re.MULTILINE,
)
_TYPES_ONLY = re.compile(r"import\s+type\b[^'\"]*$")
_FETCH = re.compile(
    r"(?<![.\w$])(?:(?:globalThis|window)\.)?fetch\s*\(\s*(?:(['\"`])(?P<url>[^'\"`\n]*)(?P<more>\1\s*\+)?)?"
)
_DEFINES_FETCH = re.compile(
    r"(?:function|async)\s+fetch\s*\(|\b(?:const|let|var)\s+fetch\b|import\s*\{[^}]*\bfetch\b"
)
_ENV = re.compile(
    r"\bprocess\.env(?:\.(?P<dot>[A-Za-z_][A-Za-z0-9_]*)|\[\s*(['\"])(?P<index>[A-Za-z_]\w*)\2\s*\])(?P<set>\s*=(?![=>]))?"
)
_ENV_SPREAD = re.compile(r"\{(?P<names>[^{}]*)\}\s*=\s*process\.env\b(?!\s*[.\[])")
_FILE = re.compile(
    r"\b(?P<call>(?:write|append|read)File(?:Sync)?|mkdir(?:Sync)?|rm(?:Sync)?|unlink(?:Sync)?|create(?:Write|Read)Stream"
    r"|readdir(?:Sync)?)\s*\(\s*(?P<quote>['\"`])(?P<path>[^'\"`$\n]+)(?P<end>['\"`]|\$\{)"
)
_SERVES = re.compile(r"\bcreateServer\s*\(")
_ASKS = re.compile(r"\bhttps?\.(?:get|request)\s*\(|\bconnect\s*\(")
_HOME = re.compile(r"\bhomedir\s*\(\s*\)(?P<rest>(?:\s*,\s*['\"][^'\"\n]*['\"])*)")
_RUN = re.compile(
    r"(?<![.\w])(?:(?:child_process|cp)\.)?(?P<call>exec|execSync|spawn|spawnSync|execFile|execFileSync|execa|execaSync)"
    r"\s*\(\s*(['\"`])(?P<command>[^'\"`$\n]+)"
)
_STRING = re.compile(r"['\"]([^'\"\n]*)['\"]")
_OWN_MODULES: Final = frozenset(
    (
        "fs",
        "path",
        "os",
        "util",
        "crypto",
        "process",
        "readline",
        "stream",
        "url",
        "events",
        "zlib",
        "child_process",
        "assert",
        "buffer",
    )
)
_STARTS_PROGRAMS: Final = frozenset({"child_process", "node:child_process", "execa"})


def read(text: str) -> Reading:
    """Read a JavaScript or TypeScript file."""
    code = _TOKEN.sub(_without_comment, text)
    starts = [0, *(match.end() for match in re.finditer("\n", code))]
    file = _File(code, starts)
    uses = sorted(file.uses(), key=lambda use: (use.line, use.column))
    foreign = any(
        not match["name"].startswith("node:") and match["name"].partition("/")[0] not in _OWN_MODULES
        for match in file.modules
    )
    return Reading("node", tuple(uses), foreign=foreign)


def _without_comment(match: re.Match[str]) -> str:
    token = match[0]
    return token if token[0] != "/" else re.sub(r"[^\n]", " ", token)


class _File:
    def __init__(self, code: str, starts: list[int]) -> None:
        self.code = code
        self.starts = starts
        self.modules = [
            match
            for match in _MODULE.finditer(code)
            if not _TYPES_ONLY.search(code, max(0, match.start() - 200), match.start() + 5)
        ]

    def uses(self) -> Iterator[Use]:
        connected = False
        if not _DEFINES_FETCH.search(self.code):
            for match in _FETCH.finditer(self.code):
                connected = True
                known, unknown, _ = (match["url"] or "").partition("${")
                host = network.host_in(known, whole=not unknown and not match["more"])
                yield self.use(Kind.NETWORK, host, match.start(), "fetch")
        for match in () if connected else self.modules:
            if network.is_node_module(match["name"]):
                # What only listens may well stay on this machine.
                listens = _SERVES.search(self.code) is not None and _ASKS.search(self.code) is None
                sure = Confidence.LOW if listens else Confidence.MEDIUM
                yield self.use(Kind.NETWORK, None, match.start(), f"import {match['name']}", sure)
                break
        yield from self.variables()
        for match in _FILE.finditer(self.code):
            kind = Kind.READ if match["call"].startswith(("read", "createRead")) else Kind.WRITE
            yield self.use(kind, match["path"], match.start(), match["call"], exact=match["end"] != "${")
        for match in _HOME.finditer(self.code):
            path = "/".join(("~", *_STRING.findall(match["rest"])))
            if path != "~":
                yield self.use(Kind.READ, path, match.start(), "homedir", Confidence.MEDIUM)
        yield from self.programs()

    def variables(self) -> Iterator[Use]:
        for match in _ENV.finditer(self.code):
            if not match["set"]:
                yield self.use(Kind.ENV, match["dot"] or match["index"], match.start(), "process.env")
        for match in _ENV_SPREAD.finditer(self.code):
            for name in re.findall(r"(?:^|,)\s*([A-Za-z_]\w*)", match["names"]):
                yield self.use(Kind.ENV, name, match.start(), "process.env")

    def programs(self) -> Iterator[Use]:
        if not any(match["name"] in _STARTS_PROGRAMS for match in self.modules):
            return
        from skillrun.check.static import shell  # noqa: PLC0415 - only where a program is started

        for match in _RUN.finditer(self.code):
            inner = shell.read(match["command"], embedded=True)
            for use in inner.uses:
                yield self.use(
                    use.kind,
                    use.value,
                    match.start(),
                    f"{match['call']}: {use.what}",
                    Confidence.MEDIUM,
                    exact=use.exact,
                )

    def use(
        self,
        kind: Kind,
        value: str | None,
        position: int,
        what: str,
        confidence: Confidence = Confidence.HIGH,
        *,
        exact: bool = True,
    ) -> Use:
        import bisect  # noqa: PLC0415 - as in shell_words

        line = bisect.bisect_right(self.starts, position)
        return Use(kind, value, line, position - self.starts[line - 1] + 1, what, confidence, exact)
