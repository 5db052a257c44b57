"""What nobody can tell from a text is said to be unknown: no confident answer rests on what this reader does not know."""

from __future__ import annotations

import time

import pytest

from skillrun.check.profile.audit import audit
from skillrun.sandbox.seatbelt.evaluate import Decision, Evaluator
from skillrun.sandbox.seatbelt.parse import parse

HEAD = "(version 1)\n(deny default)\n"
FILE = ("file-read-data", "/a/x")
WEB = ("network-outbound", "tcp://1.1.1.1:443")
READS = '(allow file-read* (subpath "/"))\n'
MANY = "|".join(f"name{number:05}" for number in range(900))


def decide(text: str, operation: str, target: str) -> Decision:
    """Ask one question."""
    return Evaluator(parse(HEAD + text)).decide(operation, target)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        # Whether a process holds an entitlement stands in its signature, not in the profile.
        ('(allow file-read* (require-entitlement "x"))', FILE),
        ('(allow file-read* (require-not (require-entitlement "x")))', FILE),
        ('(if (entitlement-value "x") (allow file-read*))', FILE),
        ('(if (string=? (entitlement-value "x") "y") (allow file-read*))', FILE),
        ('(define e (entitlement-value "x"))\n(if (equal? e "y") (allow file-read*))', FILE),
        ('(define (f) (if (equal? (entitlement-value "x") "y") (allow file-read*)))\n(f)', FILE),
        # An operation or helper of another release.
        ("(if (defined? 'teleport) (allow file-read*))", FILE),
        (READS + "(when (defined? 'teleport) (deny file-read-data))", FILE),
        # With an import, a name that means nothing here may mean something there.
        ('(import "x.sb")\n(allow file-read* (subpath (string-append home "/x")))', FILE),
        ('(import "x.sb")\n(allow file-read* my-filter)', FILE),
        ('(import "x.sb")\n(allow my-operation (subpath "/a"))', FILE),
        ('(import "x.sb")\n(if (helper) (allow process-exec* (subpath "/a")))', ("process-exec*", "/a")),
        (
            '(import "x.sb")\n(if (not (helper)) (allow process-exec* (subpath "/a")))',
            ("process-exec*", "/a"),
        ),
        (
            '(import "x.sb")\n(if (defined? \'helper) (allow process-exec* (subpath "/a")))',
            ("process-exec*", "/a"),
        ),
        # A filter that the operation does not have: the compiler may refuse it, or compare it with nothing.
        ('(allow mach-lookup (require-not (literal "/x")))', ("mach-lookup", "com.apple.x")),
        ('(allow file-read* (require-not (global-name "x")))', FILE),
        ("(allow file-read* (require-not (remote ip)))", FILE),
        ("(allow file-read* (require-not (target self)))", FILE),
        ('(allow mach-lookup (sysctl-name "com.apple.x"))', ("mach-lookup", "com.apple.x")),
        # What a socket's family is, a question about an address does not say.
        ("(allow network-outbound (socket-domain AF_INET))", WEB),
        ("(allow network-outbound (require-not (socket-domain AF_INET)))", WEB),
        # Patterns beyond what is tried here, and syntax whose meaning nobody published.
        (READS + f'(deny file-read* (regex "^/({MANY})$"))', ("file-read-data", "/name00003")),
        (READS + f'(deny file-read* (regex "^/{"x" * 20_001}"))', FILE),
        (READS + '(deny file-read* (regex "^/a{2}$"))', ("file-read-data", "/aa")),
        (READS + '(deny file-read* (regex "^/[[:alpha:]]$"))', ("file-read-data", "/a")),
        # A kernel compares bytes: whether `.` is one of them or a whole letter, nobody published.
        (READS + '(deny file-read* (regex "^/.$"))', ("file-read-data", "/é")),
        (READS + '(deny file-read* (regex "^/[é]$"))', ("file-read-data", "/é")),
        # More than this reader takes; a Mac may take it.
        ("(" * 70 + ")" * 70, FILE),
        ("(deny signal)\n" * 10_001, FILE),
        # `sysctl-write` is another name of `sysctl*` in the library's text of 10.15.
        ('(allow sysctl-write (sysctl-name "kern.x"))', ("sysctl-read", "kern.x")),
    ],
)
def test_what_cannot_be_told_is_unknown(text: str, asked: tuple[str, str]) -> None:
    """No answer is certain that rests on what the reader does not know."""
    decision = decide(text, *asked)
    assert not decision.certain, decision


@pytest.mark.parametrize(
    ("text", "asked", "allowed"),
    [
        ("(if (defined? 'teleport) (deny signal))\n" + READS, FILE, True),
        ("(if (defined? 'file-link) (deny file-link))\n" + READS, FILE, True),
        (READS + '(deny file-read* (regex "^/x{y,z}$"))', FILE, True),
        (READS + '(deny file-read* (regex "^/.*é"))', ("file-read-data", "/a/é"), False),
        ('(allow network-outbound (literal "/a"))', WEB, False),
        ('(allow network-outbound (literal "/a"))', ("network-outbound", "unix:/a"), True),
        ('(allow mach-lookup (global-name "a"))', ("mach-lookup", "b"), False),
        ("(allow system-socket (socket-domain AF_ROUTE))", ("system-socket", "AF_ROUTE"), True),
        ('(allow sysctl-write (sysctl-name "kern.x"))', ("sysctl-read", "kern.y"), False),
    ],
)
def test_what_can_be_told_is_told(text: str, asked: tuple[str, str], allowed: bool) -> None:  # noqa: FBT001 - a column
    """The doubt is about what it concerns, and nothing else."""
    decision = decide(text, *asked)
    assert decision.certain, decision.doubts
    assert decision.allowed is allowed


TWICE = "(define l (list 1))\n(define m (list 1))\n" + "(set! l (list l l))\n(set! m (list m m))\n" * 60


@pytest.mark.parametrize(
    "text",
    [
        f"{TWICE}(if (equal? l m) (allow file-read*))",
        f"{TWICE}(member l (list m))",
        f"{TWICE}(error l)",
        '(define x (literal "/a"))' + "(set! x (require-any x x))" * 60 + "(allow file-read* x)",
        '(define x (literal "/a"))' + "(set! x (require-not x))" * 5000 + "(allow file-read* x)",
    ],
    ids=["equal", "member", "error", "wide", "deep"],
)
def test_values_that_hold_one_another_twice_take_no_time(text: str) -> None:
    """Sixty lines make a value with a billion billion parts; nothing here walks through them."""
    started = time.process_time()
    profile = parse(HEAD + text)
    assert not profile.loads
    Evaluator(profile).decide(*FILE)
    assert list(audit(profile)) is not None
    assert time.process_time() - started < 5
