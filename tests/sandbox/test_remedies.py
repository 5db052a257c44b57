"""Every host that lacks something is told what to do, in its own words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skillrun.sandbox.backend import Probe
from skillrun.sandbox.linux.remedies import HostFacts, remedies

WHOLE = Probe("linux", "x86_64", landlock=7, seccomp=True, level2=True)
BARRED = replace(WHOLE, level2=False, level2_failure="stage `maps`: Operation not permitted")
HOST = HostFacts(
    release="6.12.1-generic", python="/usr/bin/python3.12", userns_limit=10_000, modules="lockdown,landlock"
)


def told(probe: Probe, **facts: object) -> str:
    """Join what a host is told."""
    return "\n".join(remedies(probe, replace(HOST, **facts)))  # type: ignore[arg-type]


def test_a_whole_host_is_told_nothing() -> None:
    """Nothing is missing, so nothing is said."""
    assert told(WHOLE) == ""


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"userns_limit": 0}, "user.max_user_namespaces"),
        ({"userns_allowed": 0}, "kernel.unprivileged_userns_clone=1"),
        ({"apparmor_userns": 1}, "/etc/apparmor.d/skillrun"),
        ({"apparmor_userns": 1}, "/usr/bin/python3.12"),
        ({"container": "Docker"}, "Docker"),
        ({"gvisor": True}, "gVisor"),
        ({}, "stage `maps`"),
    ],
)
def test_barred_namespaces_have_a_remedy(facts: dict[str, object], words: str) -> None:
    """Each way of barring user namespaces has its own words."""
    assert words in told(BARRED, **facts)


def test_root_is_not_told_of_a_rule_that_does_not_hold_for_it() -> None:
    """AppArmor's restriction is for ordinary users."""
    assert "apparmor" not in told(replace(BARRED, root=True), apparmor_userns=1)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"release": "5.15.0-91-generic"}, "upgrade"),
        ({"modules": "lockdown,capability,yama"}, "lsm=landlock,lockdown,capability,yama"),
        ({"modules": None, "container": "Docker"}, "landlock_create_ruleset"),
        ({"modules": None}, "CONFIG_SECURITY_LANDLOCK"),
        ({"release": "odd"}, "upgrade"),
    ],
)
def test_missing_landlock_has_a_remedy(facts: dict[str, object], words: str) -> None:
    """An old kernel, a module that is not started and a container are told apart."""
    assert words in told(replace(WHOLE, landlock=0), **facts)


def test_missing_seccomp_has_a_remedy() -> None:
    """A container that forbids filters is told apart from a kernel without them."""
    assert "Podman" in told(replace(WHOLE, seccomp=False), container="Podman")
    assert "CONFIG_SECCOMP_FILTER" in told(replace(WHOLE, seccomp=False))
