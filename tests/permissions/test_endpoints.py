"""Host rules: one spelling, whole labels, nothing that a resolver would read as another place (C-21)."""

from __future__ import annotations

import pytest

from skillrun.permissions.capabilities import Endpoint, Network


@pytest.mark.parametrize(
    ("written", "means"),
    [
        ("EXAMPLE.com.", "example.com:443"),
        ("example.com:8080", "example.com:8080"),
        ("example.com:8000-8010", "example.com:8000-8010"),
        ("*.Example.org", "*.example.org:443"),
        ("[0:0::1]:53", "[::1]:53"),
        ("[::1]", "[::1]:443"),
        ("10.0.0.5:5432", "10.0.0.5:5432"),
        ("localhost:1", "localhost:1"),
        ("127.0.0.1.", "127.0.0.1:443"),
        ("my_host.lan", "my_host.lan:443"),
    ],
)
def test_a_host_rule_has_one_form(written: str, means: str) -> None:
    """Letter case, a trailing dot, a long address and a missing port all become one spelling; no port means 443."""
    assert str(Endpoint.parse(written)) == means
    assert Endpoint.parse(means) == Endpoint.parse(written)


@pytest.mark.parametrize(
    "written",
    [
        *("127.1", "0x7f.1", "2130706433", "0177.0.0.1", "0", "1.2.3", "256.1.1.1", "01.2.3.4"),
        *("１２７.0.0.1", "127。0。0。1", "ⓛocalhost", "127.0.0.1\0.example.com", "faß.de"),  # noqa: RUF001 - look-alikes are the point
        *(
            "example..com",
            "example.com..",
            ".example.com",
            "-a.com",
            "a-.com",
            "a" * 64 + ".com",
            "a.b c",
            "",
        ),
        *("*", "*.com", "a.*.com", "*a.example.com", "*.*.example.com", "*.127.0.0.1"),
        *("*.co.uk", "*.github.io", "*.s3.amazonaws.com", "*.pages.dev."),
        *("::1", "[::1", "::1]:80", "[fe80::1%eth0]", "[127.0.0.1]", "[::1]x", "[]"),
        *(
            "a.com:",
            "a.com:0",
            "a.com:65536",
            "a.com:+4",
            "a.com:9-8",
            "a.com:http",
            "a.com:80:90",
            "https://a.com",
            "a.com/x",
        ),
        *("user@a.com", "a.com:４４３"),  # noqa: RUF001 - full-width digits are digits to int()
    ],
)
def test_what_has_two_readings_is_refused(written: str) -> None:
    """Short and odd addresses, look-alikes, stars without two labels, and broken ports are errors with a reason."""
    with pytest.raises(ValueError, match=r"\w") as caught:
        Endpoint.parse(written)
    assert str(caught.value)


def test_a_foreign_name_is_told_in_ascii() -> None:
    """The error names the IDNA 2008 form: `faß.de` is not `fass.de`, which belongs to somebody else."""
    with pytest.raises(ValueError, match=r"xn--fa-hia\.de"):
        Endpoint.parse("faß.de")


@pytest.mark.parametrize(
    ("rule", "host", "allowed"),
    [
        ("example.com", "example.com", True),
        ("example.com", "EXAMPLE.com.", True),
        ("example.com", "evilexample.com", False),
        ("example.com", "a.example.com", False),
        ("example.com", "example.com.evil.org", False),
        ("*.example.com", "a.example.com", True),
        ("*.example.com", "a.b.example.com", True),
        ("*.example.com", "example.com", False),
        ("*.example.com", "evilexample.com", False),
        ("10.0.0.5", "10.0.0.5", True),
        ("10.0.0.5", "0x0a.0.0.5", False),
        ("[::1]", "[0::1]", True),
        ("example.com", "exa\0mple.com", False),
    ],
)
def test_hosts_match_by_whole_labels(rule: str, host: str, *, allowed: bool) -> None:
    """Matching is by label, case-folded, and a star never stands for the name itself."""
    assert Network(endpoints=frozenset({Endpoint.parse(rule)})).allows(host, 443) is allowed


def test_ports_are_part_of_the_rule() -> None:
    """A rule without a port allows 443 and nothing else; a range allows its ends."""
    network = Network(endpoints=frozenset({Endpoint.parse("a.com"), Endpoint.parse("b.com:10-20")}))
    assert network.allows("a.com", 443)
    assert not network.allows("a.com", 80)
    assert network.allows("b.com", 10)
    assert network.allows("b.com", 20)
    assert not network.allows("b.com", 21)


def test_what_a_wider_rule_says_is_not_said_again() -> None:
    """`*.a.com:1-10` leaves of `x.a.com:5-15` only the ports that it does not allow itself."""
    network = Network(endpoints=frozenset({Endpoint("*.a.com", 1, 10), Endpoint("x.a.com", 5, 15)}))
    assert sorted(map(str, network.endpoints)) == ["*.a.com:1-10", "x.a.com:11-15"]
