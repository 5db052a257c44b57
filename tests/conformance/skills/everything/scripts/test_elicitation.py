#!/usr/bin/env python3
import json
import os
import sys


def ask(key, message, /, **fields):
    """Return what a person answered; without an answer ask, and end: the script is run again with it."""
    answers = json.loads(os.environ.get("SKILLRUN_ANSWERS", "{}"))
    if key in answers:
        return answers[key]
    with os.fdopen(int(os.environ["SKILLRUN_EVENTS_FD"]), "w") as events:
        print(json.dumps({"ask": message, "name": key, "fields": fields}), file=events)
    sys.exit(0)


answer = ask("user", sys.argv[-1], username={"type": "string", "required": True}, email={"type": "string", "required": True})
print("User response:", json.dumps(answer))
