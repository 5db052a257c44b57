"""The kernel's own word on denials: read from the audit log where that can be read, asked for with `trace`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from arena import MODES

from skillrun.launch.audit import Audit, suspects
from skillrun.launch.denials import Suspect

if TYPE_CHECKING:
    from arena import Arena

# As Linux 6.18 wrote them; 1423 is a denial, 1424 names the domain's maker, 1300 and 1327 are other programs'.
DOMAIN = (
    1424,
    'audit(1796040994.032:22): domain=186d7b328 status=allocated mode=enforcing pid=300 uid=0 exe="/usr/bin/python3" comm="python3"',
)
OTHER = (
    1424,
    'audit(1796040994.032:23): domain=186d7b999 status=allocated mode=enforcing pid=301 uid=0 exe="/x pid=300" comm="x"',
)


def access(blockers: str, rest: str, domain: str = "186d7b328") -> tuple[int, str]:
    """Write one denial."""
    return 1423, f"audit(1796040994.032:22): domain={domain} blockers={blockers} {rest}"


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (access("fs.read_file", 'path="/etc/shadow" dev="vda" ino=7'), ("read", "/etc/shadow")),
        (access("fs.read_file", 'path=2F746D702F6120622E747874 dev="vda" ino=7'), ("read", "/tmp/a b.txt")),
        (access("fs.read_dir", 'path="/home/ada" dev="vda" ino=7'), ("read", "/home/ada")),
        (access("fs.make_reg", 'path="/home/ada" dev="vda" ino=7'), ("write", "/home/ada")),
        (access("fs.write_file,fs.truncate", 'path="/x" dev="vda" ino=7'), ("write", "/x")),
        (access("fs.read_file,fs.write_file", 'path="/x" dev="vda" ino=7'), ("write", "/x")),
        (access("net.connect_tcp", "daddr=192.0.2.1 dest=80"), ("network", None)),
        (access("scope.signal", 'opid=1 ocomm="systemd"'), None),
        (access("fs.read_file", 'path="/x" dev="vda" ino=7', domain="186d7b999"), None),
        ((1300, 'audit(1:2): arch=c000003e domain=186d7b328 blockers=fs.read_file path="/x"'), None),
        ((1423, ""), None),
        (access("", 'path="/x"'), None),
    ],
)  # fmt: skip
def test_what_a_record_says(record: tuple[int, str], expected: tuple[str, str | None] | None) -> None:
    """A denial of the run's own domain is one, with its path; of any other domain or record nothing is taken."""
    # The maker is named only behind the first denial.
    found = list(suspects([record, DOMAIN, OTHER], 300))
    wanted = [] if expected is None else [Suspect(expected[0], expected[1] and Path(expected[1]), "kernel")]
    assert found == wanted


def test_without_its_maker_a_domain_is_nobodys() -> None:
    """When the record that names the maker was lost, nothing is told of the run: no guess is passed off as the kernel's."""
    assert not list(suspects([access("fs.read_file", 'path="/x"')], 300))


def test_an_old_kernel_is_not_asked() -> None:
    """Before ABI 7 Landlock logs nothing."""
    assert "ABI 6" in str(Audit.opened(6))


@pytest.mark.parametrize("mode", MODES)
def test_a_log_that_can_not_be_read_is_said(arena: Arena, mode: str) -> None:
    """The run is not harmed, its result says why there is no evidence, and nobody turned auditing on."""
    arena.script("raise SystemExit(3)")
    before = Audit.opened(7)
    with arena.runner(mode) as runner:
        result = runner.run("demo", trace=True)
    assert result.exit_code == 3
    rules = [one.rule for one in result.warnings]
    if isinstance(before, str):
        assert rules.count("trace-unavailable") == (1 if mode == "confined" else 0)
        assert isinstance(Audit.opened(7), str)
    else:
        before.close()
        assert "trace-unavailable" not in rules
    arena.assert_clean()


def test_the_kernel_tells_of_a_real_denial(arena: Arena) -> None:
    """At level 1 a read outside the grant is told by the kernel, though the script says nothing of it."""
    opened = Audit.opened(7)
    if isinstance(opened, str):
        if os.environ.get("SKILLRUN_REQUIRE_AUDIT") == "1":
            pytest.fail(opened)
        pytest.skip(opened)
    opened.close()
    secret = arena.root / "data x.txt"
    secret.write_text("content")
    arena.script(f"try: open({str(secret)!r})\nexcept OSError: pass\nraise SystemExit(3)")
    with arena.runner("level-1") as runner:
        assert not runner.run("demo").denials
        denials = runner.run("demo", trace=True).denials
    assert [(one.operation, one.path, one.evidence, one.fix) for one in denials] == [
        ("read", secret, "kernel", f"--read '{secret}'")
    ]
