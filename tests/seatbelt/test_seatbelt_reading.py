"""The reader: places, Scheme, and texts that are wrong, endless or hostile."""

from __future__ import annotations

import os
import random
import re
import time
import unicodedata

import pytest

from skillrun.sandbox.seatbelt.automaton import Automaton, TooComplex
from skillrun.sandbox.seatbelt.evaluate import Evaluator
from skillrun.sandbox.seatbelt.parse import parse
from skillrun.sandbox.seatbelt.regexes import _Dead, _pieces, compiled, folded

FUZZ = int(os.environ.get("SKILLRUN_FUZZ", "0"))
SEED = int(os.environ.get("SKILLRUN_SEED", "0")) or random.SystemRandom().randrange(1 << 32)
HEAD = "(version 1)\n(deny default)\n"


def decide(text: str, operation: str, target: str, **parameters: str) -> bool:
    """Ask one question of a profile that has to load."""
    profile = parse(HEAD + text, parameters)
    assert profile.loads, profile.faults
    return Evaluator(profile).decide(operation, target).allowed


def faults(text: str) -> list[str]:
    """Return the names of what is wrong."""
    return [fault.rule for fault in parse(text).faults]


def test_a_rule_knows_its_line() -> None:
    """A rule points at its own text."""
    profile = parse(HEAD + '\n; why\n  (allow file-read*\n    (literal "/a"))\n')
    rule = profile.rules[1]
    at = profile.source.at(rule.span)

    assert (at.line, at.column) == (5, 3)
    assert profile.source.words(rule.span) == '(allow file-read* (literal "/a"))'


def test_a_rule_of_a_helper_points_at_the_call() -> None:
    """A rule that a procedure makes points at the outermost call, and still knows where it is written."""
    profile = parse(
        HEAD
        + '(define (inner p) (allow file-read* (subpath p)))\n(define (outer p) (inner p))\n(outer "/a")\n'
    )
    rule = profile.rules[1]

    assert profile.source.line(rule.span) == 5
    assert profile.source.line(rule.made) == 3


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ('(define (f . paths) (apply subpath paths)) (allow file-read* (f "/b" "/a"))', True),
        ('(for-each (lambda (p) (allow file-read* (subpath p))) \'("/b" "/a"))', True),
        ('(let* ((a "/") (b (string-append a "a"))) (allow file-read* (subpath b)))', True),
        (
            '(letrec ((f (lambda (n) (if (= n 0) "/a" (f (- n 1)))))) (allow file-read* (subpath (f 5))))',
            True,
        ),
        ('(let loop ((n 3)) (if (> n 0) (begin (allow file-read* (subpath "/a")) (loop (- n 1)))))', True),
        ('(cond (#f (deny file-read*)) (else (allow file-read* (subpath "/a"))))', True),
        ('(case \'b ((a) (deny file-read*)) ((b) (allow file-read* (subpath "/a"))))', True),
        ('(if (and "" 0 (or #f "x")) (allow file-read* (subpath "/a")))', True),
        ('(if (member "x" (list "y" "x")) (allow file-read* (subpath (substring "//a" 1))))', True),
        ('(define-once p "/a") (define-once p "/b") (allow file-read* (subpath p))', True),
        ('(apply allow (list file-read* (subpath "/a")))', True),
        ('(with-filter (subpath "/a") (allow file-read*) (allow file-write* (literal "/a/x")))', True),
        ('(with-filter (subpath "/b") (allow file-read* (literal "/a/x") (literal "/b/x")))', False),
        ('(with-operations (list file-read* file-write*) (allow (subpath "/a")))', True),
        ('(with-modifier report (allow file-read* (subpath "/a")))', True),
        ('(unless #t (allow file-read* (subpath "/a")))', False),
        ('(allow file-read* (require-all (subpath "/a") (require-not (regex #"/x$"))))', False),
    ],
)
def test_scheme(text: str, allowed: bool) -> None:  # noqa: FBT001 - a column of the table
    """What profiles compute is computed."""
    assert decide(text, "file-read-data", "/a/x") is allowed


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("(define (f) (f)) (f)", "too-deep"),
        ("(let loop ((n 0)) (if #t (begin (loop n))))", "too-deep"),
        ("(" * 500 + ")" * 500, "too-deep"),
        ("'" * 500 + "a", "too-deep"),
        ("(for-each (lambda (a) (for-each (lambda (b) (map list l)) l)) l)", "too-long"),
        (
            "(define (f n) (append l l l l l l l l) (f n)) (for-each (lambda (a) (for-each (lambda (b) (append l l l l l)) l)) (append l l l l l l l l l l l l l l l l l l l l))",
            "too-long",
        ),
        ('(define (d s n) (if (= n 0) s (d (string-append s s) (- n 1)))) (d "x" 40)', "too-large"),
        ("(+ 9007199254740992 1)", "too-large"),
        ('(allow file-read* (subpath "/a") . )', "unknown-operation"),
        ("(lambda (a . b c) 1)", "type-error"),
        ("((lambda (a) a))", "arity"),
        ("(1 2)", "type-error"),
        ('(error "no" 1)', "error"),
        ("(set! nothing 1)", "unbound"),
        ('(remote ip "localhost:1")(allow network-outbound (remote carrier-pigeon "*:1"))', "type-error"),
        ("(allow file-read* (vnode-type FOLDER))", "type-error"),
        ("(allow signal (target neighbours))", "type-error"),
        ('(allow file-read-metadata (path-ancestors "a/b"))', "type-error"),
        ("(trace 1)", "type-error"),
        (")", "unbalanced"),
        ("'", "unbalanced"),
    ],
)
def test_what_is_wrong_is_named(text: str, rule: str) -> None:
    """A text that computes too much, or nothing that means anything, is a fault and no crash."""
    many = "(define l (list 1 2 3 4 5 6 7 8 9 0))(define l (append l l l l l l l l l l))\n"
    started = time.process_time()
    assert rule in faults(HEAD + many + text)
    assert time.process_time() - started < 5


def test_the_forms_behind_a_fault_are_read() -> None:
    """An audit sees the rest of a profile that would not load."""
    profile = parse(HEAD + '(allow teleport)\n(allow file-read* (subpath "/"))')

    assert not profile.loads
    assert [rule.written for rule in profile.rules] == [("default",), ("file-read*",)]
    assert not Evaluator(profile).decide("file-read-data", "/etc/passwd").allowed


def test_names_of_an_import_are_open_not_wrong() -> None:
    """A helper that only an imported profile can define makes answers unknown instead of a fault."""
    profile = parse(HEAD + '(import "system.sb")\n(system-network)\n(allow file-read* (home-subpath "/x"))')
    decision = Evaluator(profile).decide("network-outbound", "tcp://1.1.1.1:443")

    assert profile.loads
    assert [one.name for one in profile.imports] == ["system.sb", "system-network", "home-subpath"]
    assert not decision.certain


@pytest.mark.parametrize(
    "pattern", [r"^(a+)+$", r"(a|a)*b", r"(a*)*(a*)*x", r"a.*a.*a.*a.*b", r"^(.*/)*(.*/)*x$"]
)
def test_no_pattern_takes_long(pattern: str) -> None:
    """Patterns on which a backtracking engine does not come back within a lifetime."""
    started = time.process_time()
    assert not compiled(pattern).search("a/" * 2000 + "!")
    assert not compiled(pattern).search("a" * 4000 + "!")
    assert time.process_time() - started < 2


def test_both_engines_agree() -> None:
    """The automaton and Python's engine find the same, on random patterns that Python can be trusted with."""
    rng = random.Random(SEED)
    compared = 0
    while compared < 800:
        text = "".join(
            rng.choice(["a", "b", "[ab]", "[^a]", ".", "(a", ")", "|", "*", "?", "+", "^", "$"])
            for _ in range(rng.randint(1, 7))
        )
        try:
            pieces = _pieces(text)
            automaton = Automaton(pieces)
        except (TooComplex, _Dead):  # a pattern that is none
            continue
        python = re.compile(
            "".join(r"\Z" if v == "$" else v if isinstance(v, str) else v.pattern for _, v in pieces)
        )
        for _ in range(6):
            subject = "".join(rng.choice("ab") for _ in range(rng.randint(0, 6)))
            assert automaton.search(subject) is bool(python.search(subject)), (SEED, text, subject)
            compared += 1


def test_folded_patterns_match_both_cases_and_nothing_else() -> None:
    """A folded path matches itself in any case of its letters, whatever characters it has."""
    rng = random.Random(SEED)
    for _ in range(500):
        text = "".join(rng.choice('aZ.[]^$()|*+?{}\\-/ é\n"') for _ in range(rng.randint(1, 12)))
        pattern = compiled(f"^{folded(text)}$")
        assert pattern.dead is None, (SEED, text, pattern.dead)
        assert pattern.search(text), (SEED, text)
        assert pattern.search(text.swapcase()), (SEED, text)
        assert pattern.search(unicodedata.normalize("NFD", text)), (SEED, text)
        assert not pattern.search(text + "x"), (SEED, text)


PIECES = (
    "(", ")", "'", '"', '#"', "\\", ";", "\n", " ", "version", "1", "allow", "deny", "default", "file-read*", "subpath", "regex",
    '"/a"', '#"^/a$"', "param", '"P"', "define", "let", "lambda", "if", "import", "with", "no-log", "require-not", "x", "#f",
    "network-outbound", "remote", "ip", '"*:1"', "string-append", "map", "list", "apply", "\x00", "\ud800", "é", "(version 1)",
    "(deny default)", "path-ancestors", "with-filter", "vnode-type", "DIRECTORY", "for-each", "set!", "#o7", "#x", "-", ".", "begin",
)  # fmt: skip


def test_fuzz_of_the_reader() -> None:
    """No text makes the reader or the evaluator crash or hang."""
    rng = random.Random(SEED)
    whole = '(version 1)\n(deny default)\n(define (f p) (allow file-read* (subpath p)))\n(f "/a")\n(if (param "P") (deny signal (target self)))'
    slowest = 0.0
    for number in range(FUZZ * 5 or 2000):
        if number % 2:
            text = " ".join(rng.choice(PIECES) for _ in range(rng.randint(1, 40)))
        else:
            letters = list(whole)
            for _ in range(rng.randint(1, 6)):
                place = rng.randrange(len(letters))
                letters[place : place + rng.randint(0, 4)] = rng.choice(PIECES)
            text = "".join(letters)
        started = time.process_time()
        evaluator = Evaluator(parse(text, {"P": "/p"}))
        for operation, target in (
            ("file-read-data", "/a/b"),
            ("network-outbound", "tcp://1.1.1.1:1"),
            ("signal", "self"),
        ):
            evaluator.decide(operation, target)
        slowest = max(slowest, time.process_time() - started)
        assert slowest < 5, (f"SKILLRUN_SEED={SEED}", number, text)
