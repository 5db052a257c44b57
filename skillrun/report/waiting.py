"""Waiting: a call that waits, whole, for the person who has to settle it.

What a model, a skill or a script wrote stands behind `| ` and nowhere else, each line of it cut to the width here
and not by the terminal: no text of theirs begins a line, so none can pass for skillrun's own words. What skillrun
itself knows comes after it, next to the question: arguments of any length push nothing of it out of sight.
"""

from __future__ import annotations

import datetime as dt
import json
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from skillrun.conversation.entry import State
from skillrun.permissions.grant import Capability
from skillrun.report.escape import escape
from skillrun.report.text import counted, width
from skillrun.report.words import permission

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skillrun.conversation.entry import Entry
    from skillrun.report.showing import View

STATES: Final = {
    State.READY: "is ready to be made",
    State.AWAITING_APPROVAL: "waits for a person's agreement",
    State.AWAITING_INPUT: "waits for an answer",
    State.PAUSED: "waits for a task",
    State.RUNNING: "is being made",
    State.IN_DOUBT: "is in doubt: the process that made it has died",
    State.ANSWERED: "has its result",
}
QUOTE: Final = "  | "
"""What stands before each line that somebody else wrote."""
CUT: Final = "  + "
"""What stands before the rest of such a line that was too long."""
_LABEL: Final = 14
_SHOWN: Final = ("skill", "folder", "script", "version", "interpreter", "workspace", "require")
_ORDER: Final = tuple(
    one.value
    for one in (Capability.TRUST, Capability.FS_WRITE, Capability.NETWORK, Capability.FS_READ, Capability.ENV)
)
_MOST_DENIED: Final = 5
_LABELS: Final = {"interpreter": "run by", "require": "at least"}


@dataclass(frozen=True, slots=True)
class Waiting:
    """An open call as it is shown: at what time, how wide, and the commands that settle it, if they are wanted."""

    entry: Entry
    view: View
    now: float
    settle: tuple[str, ...] = ()


def lines(shown: Waiting) -> Iterator[str]:
    """Write one call: what the model wrote, what is asked, then what skillrun knows and how it is settled."""
    entry, style = shown.entry, shown.view.style
    yield style(f"{escape(entry.conversation)} {entry.key}", "bold") + f"  {STATES[entry.state]}"
    yield from _own("a tool that the model calls, and the arguments that it wrote:", shown)
    yield from quoted(entry.call.name, shown)
    yield from quoted(written(entry.call.arguments), shown)
    yield from _question(shown)
    yield from _task(shown)
    yield from _facts(shown)
    for command in shown.settle:
        yield "  " + "settle".ljust(_LABEL) + escape(command)  # whole: it is to be copied


def quoted(text: str, shown: Waiting) -> Iterator[str]:
    """Write somebody else's text, every character of it, so that no line of it begins where skillrun's own do."""
    room = max(shown.view.columns - len(QUOTE), 1)
    for line in text.split("\n"):
        first, *rest = _cut(escape(line), room)
        yield shown.view.style(QUOTE, "dim") + first
        for piece in rest:
            yield shown.view.style(CUT, "dim") + piece


def written(value: Any) -> str:
    """Return JSON for people: indented, every character as it is."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def commands(entry: Entry, store: str | None = None) -> Iterator[str]:
    """Give the command lines that settle a call."""
    named = [entry.conversation, entry.key]
    at = [] if store is None else ["--store", store]
    if entry.state is State.AWAITING_APPROVAL:
        if entry.digest:
            yield shlex.join(["skillrun", "approve", *named, "--digest", entry.digest, *at])
        yield shlex.join(["skillrun", "deny", *named, *at])
    elif entry.state is State.AWAITING_INPUT:
        yield shlex.join(["skillrun", "answer", *named, *at])
    elif entry.state is State.IN_DOUBT:
        yield shlex.join(["skillrun", "settle", *named, "--retry", *at]) + "   (or --give-up)"


def moment(seconds: float) -> str:
    """Write a time of day, UTC."""
    try:
        return f"{dt.datetime.fromtimestamp(seconds, dt.timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return "a time that no calendar has"


def _facts(shown: Waiting) -> Iterator[str]:
    entry = shown.entry
    if entry.terms:
        yield from _terms(entry.terms, shown)
        before = entry.terms.get("before")
        if isinstance(before, dict):
            yield from _changes(before, entry.terms, shown)
    if entry.digest:
        yield from _pair("digest", entry.digest, shown)
    if entry.decision is not None:
        word = "agreed to" if entry.decision.agreed else "refused"
        yield from _pair(
            word, f"by {_one(entry.decision.who or 'somebody')}, {moment(entry.decision.when)}", shown
        )
    if entry.claim is not None:
        until = moment(entry.claim.until_wall)
        yield from _pair(
            "made by", f"process {entry.claim.pid} of {_one(entry.claim.host)}, until {until}", shown
        )
    if entry.since is not None:
        yield from _pair("since", moment(entry.since), shown)
    if entry.expires is not None:
        over = ", which is over: nobody can settle it any more" if shown.now > entry.expires else ""
        yield from _pair("expires", moment(entry.expires) + over, shown)


def _terms(terms: Mapping[str, Any], shown: Waiting) -> Iterator[str]:
    """Write what a person agrees to."""
    if terms.get("problem"):
        yield from _pair("problem", f"it can't be made as it is: {_one(terms['problem'])}", shown, "red")
    for key in _SHOWN:
        if terms.get(key) is not None:
            yield from _pair(_LABELS.get(key, key), _one(terms[key]), shown)
    identity = [str(part) for part in terms.get("identity") or ()]
    if "skill" not in terms and identity:
        yield from _pair("a tool of", " ".join(map(_one, identity)), shown)
    elif identity[3:]:
        yield from _pair("sub-command", " ".join(map(_one, identity[3:])), shown)
    if "granted" in terms:
        rights = [_granted(one) for one in sorted(terms["granted"], key=_weight)] or [
            "nothing but its own files and the arguments"
        ]
        for number, right in enumerate(rights):
            yield from _pair("" if number else "may", right, shown)
        yield from _denied(terms.get("denied") or (), shown)
    if terms.get("unconfined"):
        text = "NOTHING CONFINES IT: it runs with all of your rights, whatever stands above"
        yield from _pair("UNCONFINED", text, shown, "red", "bold")


def _denied(paths: Sequence[Any], shown: Waiting) -> Iterator[str]:
    """Write what is denied; the names that usually hold secrets are many, and hide what matters."""
    if len(paths) > _MOST_DENIED:
        yield from _pair("may not", f"{len(paths)} paths below these, which `pending --json` lists", shown)
        return
    for number, path in enumerate(paths):
        yield from _pair("" if number else "may not", _one(path), shown)


def _changes(before: Mapping[str, Any], after: Mapping[str, Any], shown: Waiting) -> Iterator[str]:
    """Write what is different from the terms that a person has agreed to already."""
    yield from _pair("CHANGED", "it was agreed to, and is something else since:", shown, "red", "bold")
    for key in dict.fromkeys((*before, *after)):
        if key == "before" or before.get(key) == after.get(key):
            continue
        for number, text in enumerate(_changed(key, before.get(key), after.get(key))):
            yield from _pair("" if number else f"  {escape(key)}", text, shown)


def _changed(key: str, old: Any, new: Any) -> list[str]:
    if not (isinstance(old, list) and isinstance(new, list)):
        return [f"- {_one(old)}", f"+ {_one(new)}"]
    words = _granted if key == "granted" else _one
    gone = [f"- {words(one)}" for one in old if one not in new]
    come = [f"+ {words(one)}" for one in new if one not in old]
    return [*gone, *come] or ["in another order"]


def _question(shown: Waiting) -> Iterator[str]:
    question = shown.entry.question
    if shown.entry.state is not State.AWAITING_INPUT or question is None:
        return
    yield from _own(f"{_asker(shown.entry)} asks you; these are its words, not skillrun's:", shown)
    yield from quoted(question.message, shown)
    if question.fields:
        yield from _own("the fields that it wants filled, in its words:", shown)
        for name, schema in question.fields.get("properties", {}).items():
            needed = name in question.fields.get("required", ())
            yield from quoted(field(name, schema, needed=needed), shown)
    if question.url is not None:
        yield from _own("the page that it wants you to visit; skillrun does not open it:", shown)
        # A letter of another alphabet looks like one of ours; an address is shown in what it is made of.
        yield from quoted(question.url.encode("ascii", "backslashreplace").decode(), shown)
        yield from _pair("its host", _host(question.url), shown)
    yield from _pair("question", _one(question.key), shown)


def _asker(entry: Entry) -> str:
    """Name who asks; a question is never skillrun's own."""
    if entry.terms.get("script"):
        return f"the script {_one(entry.terms['script'])} of the skill {_one(entry.terms.get('skill'))}"
    return "the tool that is named above"


def field(name: str, schema: Any, *, needed: bool) -> str:
    """Write one field of a question in a line: its name, what fits, what it stands for."""
    told = schema if isinstance(schema, dict) else {}
    if isinstance(told.get("enum"), list):
        kind = "one of " + ", ".join(json.dumps(one, ensure_ascii=False) for one in told["enum"])
    else:
        kinds = told.get("type", "anything")
        kind = " or ".join(map(str, kinds)) if isinstance(kinds, list) else str(kinds)
    parts = [kind, "needed" if needed else "may be left out"]
    if "default" in told:
        parts.append(f"default {json.dumps(told['default'], ensure_ascii=False)}")
    said = [str(told[key]) for key in ("title", "description") if told.get(key)]
    return f"{json.dumps(name, ensure_ascii=False)}: {'; '.join(parts)}" + "".join(
        f" - {one}" for one in said
    )


def _task(shown: Waiting) -> Iterator[str]:
    task = shown.entry.task
    if shown.entry.state is not State.PAUSED or task is None:
        return
    yield from _own(f"the task is {_one(task.get('status'))}; it says:", shown)
    yield from quoted(str(task.get("message") or "nothing"), shown)


def _host(url: str) -> str:
    try:
        return _one((urlsplit(url).hostname or "none").encode("ascii", "backslashreplace").decode())
    except ValueError:
        return "none that can be read"


def _granted(item: Any) -> str:
    """Write one thing that was granted, from how terms keep it: the kind and the value, both texts."""
    kind, value = item
    capability = next((one for one in Capability if one.value == kind), None)
    if capability is None:
        return f"{escape(str(kind))} {_one(value)}"
    if capability is Capability.NETWORK and value in {"True", "False"}:
        return permission(capability, value == "True")
    if capability is Capability.TIMEOUT:
        return f"timeout {escape(str(value))} s"
    if capability is Capability.LIMITS:
        return permission(capability, str(value))
    return permission(capability, "") + _one(value)


def _weight(item: Any) -> int:
    """Order what was granted: what can do harm first."""
    return _ORDER.index(item[0]) if item[0] in _ORDER else len(_ORDER)


def _one(value: Any) -> str:
    """Write a value on one line; one with blanks in quotes, so that they can't part it into words of ours."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    shown = escape(text)
    return shown if shown and " " not in shown else '"' + shown.replace('"', '\\"') + '"'


def _own(sentence: str, shown: Waiting) -> Iterator[str]:
    """Write a sentence of skillrun's own, with names of others in it: no line of it begins where the first one does."""
    first, *rest = _cut(sentence, max(shown.view.columns - 4, 1))
    yield f"  {first}"
    for piece in rest:
        yield f"    {piece}"


def _pair(label: str, text: str, shown: Waiting, *colours: str) -> Iterator[str]:
    """Write a fact of skillrun's own; what it has to be cut for goes on below itself."""
    indent = " " * (2 + _LABEL)
    first, *rest = _cut(text, max(shown.view.columns - len(indent), 1))
    yield "  " + shown.view.style(label, *colours) + " " * max(_LABEL - len(label), 1) + first
    for piece in rest:
        yield indent + piece


def _cut(text: str, columns: int) -> list[str]:
    """Cut a text hard, so that no terminal has to."""
    pieces, piece, used = [], "", 0
    for character in text:
        wide = width(character)
        if used + wide > columns and piece:
            pieces.append(piece)
            piece, used = "", 0
        piece += character
        used += wide
    return [*pieces, piece]


def total(number: int) -> str:
    """Say how many calls have no result."""
    return f"{counted(number, 'call')} without a result" if number else "no call waits"
