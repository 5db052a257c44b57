"""Endpoint: a host rule with its ports, in one normal form that requests, ceilings and questions share."""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from dataclasses import dataclass

from skillrun.resources import table

# Where a rule names no port, it means TLS and nothing else: the least surprising port that is not plain text.
DEFAULT_PORT = 443
LAST_PORT = 65535
_HOST_LENGTH = 253  # RFC 1035, without the trailing dot
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PORTS = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")
_SUFFIX_LABELS = 2


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One host rule and the ports that may be connected to there, inclusive on both ends.

    `host` is a name, `*.suffix` (any depth below, never the suffix itself), or an address; `port` None
    means 443. The constructor brings it to normal form and raises ValueError with the reason when it
    is none of these. The rules are those of facts/network 2.
    """

    host: str
    port: int | None = None
    last: int | None = None

    def __post_init__(self) -> None:
        first = DEFAULT_PORT if self.port is None else self.port
        last = first if self.last is None else self.last
        if not 1 <= first <= last <= LAST_PORT:
            raise ValueError(f"ports are numbers from 1 to {LAST_PORT}, the smaller first")
        object.__setattr__(self, "host", _rule_form(self.host))
        object.__setattr__(self, "port", first)
        object.__setattr__(self, "last", last)

    @classmethod
    def parse(cls, text: str) -> Endpoint:
        """Read `host`, `host:port`, `host:low-high`, `*.suffix[:port]` or `[v6][:port]`; ValueError says what is wrong."""
        if "://" in text:
            raise ValueError("an address of a page is not a host: leave the scheme and the path out")
        if text.startswith("["):
            host, closed, rest = text.partition("]")
            if not closed:
                raise ValueError("the bracket is never closed")
            if rest and not rest.startswith(":"):
                raise ValueError("after the bracket comes nothing or `:port`")
            host, ports = host + closed, rest[1:] if rest else None
        else:
            host, colon, after = text.partition(":")
            ports = after if colon else None
        if ports is None:
            return cls(host)
        match = _PORTS.fullmatch(ports)
        if match is None:
            raise ValueError("after the host comes `:port` or `:low-high`, in plain digits")
        return cls(host, int(match[1]), int(match[2] or match[1]))

    @property
    def ports(self) -> tuple[int, int]:
        """First and last port."""
        assert self.port is not None and self.last is not None  # noqa: S101, PT018 - the constructor filled both in
        return self.port, self.last

    def __str__(self) -> str:
        first, last = self.ports
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{first}" if first == last else f"{host}:{first}-{last}"

    def __and__(self, other: Endpoint) -> Endpoint | None:
        """Return what both allow: the narrower host rule on the common ports, or None."""
        if host_covers(self.host, other.host):
            host = other.host
        elif host_covers(other.host, self.host):
            host = self.host
        else:
            return None
        first, last = max(self.ports[0], other.ports[0]), min(self.ports[1], other.ports[1])
        return Endpoint(host, first, last) if first <= last else None


def host_covers(rule: str, host: str) -> bool:
    """Whether a host rule allows everything another allows; both in normal form. Whole labels only, never a text ending."""
    if rule == host:
        return True
    return rule.startswith("*.") and host.removeprefix("*").endswith(rule[1:]) and not is_address(host)


def host_form(text: str) -> str:
    """Return the one spelling of a host or an address (v6 without brackets); ValueError says why there is none.

    Strict, because resolvers are not: `getaddrinfo` reads `127.1`, `0x7f.1`, full-width digits and a name
    cut at NUL all as loopback (facts/network 2). What has two readings is refused before it is compared.
    """
    if text.startswith("["):
        return _address6(text)
    if not text.isascii():
        raise ValueError(f"a host is written in ASCII; this one may be `{_ascii_form(text)}`")
    name = text.lower().removesuffix(".")
    labels = name.split(".")
    if len(name) > _HOST_LENGTH or not all(_LABEL.fullmatch(label) for label in labels):
        raise ValueError("a host is labels of letters, digits, `-` and `_`, joined by single dots")
    if _NUMERIC.fullmatch(labels[-1]):
        try:
            return str(ipaddress.IPv4Address(name))
        except ValueError:
            raise ValueError("an address is four plain decimal numbers") from None
    return name


def is_address(host: str) -> bool:
    """Whether a host in normal form is a literal address: names never match addresses, nor the reverse."""
    return ":" in host or host.rpartition(".")[2].isdigit()


def _rule_form(text: str) -> str:
    if not text.startswith("*"):
        return host_form(text if ":" not in text or text.startswith("[") else f"[{text}]")
    if not text.startswith("*."):
        raise ValueError("a star stands only for whole labels in front: `*.example.org`")
    suffix = host_form(text[2:])
    if is_address(suffix) or len(suffix.split(".")) < _SUFFIX_LABELS:
        raise ValueError("a star needs at least two labels behind it: `*.example.org`")
    if suffix in table("suffixes")["shared"]:
        raise ValueError(f"anybody can get a name below `{suffix}`: name the hosts one by one")
    return f"*.{suffix}"


def _address6(text: str) -> str:
    inside = text.removeprefix("[").removesuffix("]")
    if text != f"[{inside}]" or "%" in inside:
        raise ValueError("an IPv6 address stands in brackets and has no zone")
    try:
        return str(ipaddress.IPv6Address(inside))
    except ValueError:
        raise ValueError("this is no IPv6 address") from None


def _ascii_form(text: str) -> str:
    # Punycode of the label as written is the IDNA 2008 form; Python's `idna` codec is IDNA 2003 and makes
    # `fass.de` of `faß.de`, another owner's domain.
    labels = unicodedata.normalize("NFC", text).lower().split(".")
    return ".".join(x if x.isascii() else "xn--" + x.encode("punycode", "replace").decode() for x in labels)
