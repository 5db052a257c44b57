"""Scripts as tools: real runs, and what a model reads about each way in which one can end."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from skillrun.tools.box import Toolbox
from skillrun.tools.outcome import ToolCall
from skillrun.tools.script_tool import script_tools

if TYPE_CHECKING:
    from conftest import World

ECHO = """
    #!/usr/bin/env python3
    # Copyright 2026 Somebody. All rights reserved.
    # Licensed under the Apache License, Version 2.0.

    # Says what it was given.
    import argparse, json, sys
    p = argparse.ArgumentParser()
    p.add_argument("name")
    p.add_argument("--times", type=int, default=1, help="How often")
    p.add_argument("--loud", action="store_true")
    p.add_argument("--tags", nargs="*")
    a = p.parse_args()
    print(json.dumps(vars(a)))
"""


def test_a_script_is_a_tool_with_real_parameters(world: World) -> None:
    """Name, description without the licence, schema; what argparse sees is what was passed; JSON comes back structured."""
    world.skill("demo", scripts={"echo.py": ECHO})
    tool = world.tools()["demo__echo"]
    assert tool.about == "The skill demo.\n\nSays what it was given."
    assert tool.namespace == "demo"
    assert tool.input_schema == {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "times": {"type": "integer", "default": 1, "description": "How often"},
            "loud": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["name"],
        "additionalProperties": False,
    }
    outcome = tool.call({"name": "--loud", "times": -2, "tags": ["a b", "c"]})
    assert outcome.structured == {"name": "--loud", "times": -2, "loud": False, "tags": ["a b", "c"]}
    assert outcome.result is not None
    assert outcome.result.guarantees is not None


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("import sys; print('partial'); sys.exit('boom')", "Error (exit 1):\npartial\nboom"),
        ("import sys; sys.exit(3)", "Error (exit 3): (no output)"),
        ("pass", "(no output)"),
        ("print('   ')", "(no output)"),
        ("import sys; sys.stderr.write('only here')", "only here"),
        ("import os; os.kill(os.getpid(), 9)", "Error (signal 9, SIGKILL): (no output)"),
        (
            "import os; os.write(1, b'bad \\xff\\x00 \\x1b[31mred\\x1b[0m')",
            "bad \N{REPLACEMENT CHARACTER} red",
        ),
        ("print('Error (exit 1): not really')", "Error (exit 1): not really"),
    ],
)
def test_every_end_is_a_text_that_is_not_empty(world: World, script: str, text: str) -> None:
    """Exit codes, signals, silence, bytes that are no text, and a script that pretends to have failed."""
    world.skill("demo", scripts={"x.py": f"#!/usr/bin/env python3\n{script}\n"})
    outcome = world.tools()["demo__x"].call()
    assert outcome.text == text
    assert outcome.is_error == (outcome.result is not None and not outcome.result.ok)
    json.dumps(outcome.text).encode()


def test_a_script_that_takes_too_long_is_told_with_what_it_printed(world: World) -> None:
    """The timeout of a `scripts` entry holds, and the text says how long it was."""
    front = "metadata: {skillrun: {scripts: {slow.sh: {timeout: 1}}}}\n"
    world.skill("demo", front=front, scripts={"slow.sh": "#!/bin/sh\necho started\nsleep 30\n"})
    outcome = world.tools()["demo__slow"].call()
    assert outcome.is_error
    assert outcome.text == "Error (timed out): started [killed: exceeded 1 s]"


def test_hints_about_permissions_never_reach_the_model(world: World) -> None:
    """A refused run says that it was not started here; why, and what would help, is the operator's to read."""
    world.skill("demo", front="network: [api.example.com:443]\n", scripts={"x.sh": "#!/bin/sh\necho hi\n"})
    outcome = world.tools("sandbox: {network: [api.example.com:443]}\n")["demo__x"].call()
    assert outcome.text == "Error (not started): the script was not started here"
    assert outcome.result is not None
    assert "api.example.com" in outcome.result.error.message  # type: ignore[union-attr] # it was refused


def test_declared_parameters_reach_any_script(world: World) -> None:
    """Positions, flags, `repeat`, `false_arg`, `arg: --x=` and JSON on stdin, for a script that says nothing itself."""
    front = """\
        metadata:
          skillrun:
            scripts:
              show.sh:
                description: Shows its words.
                parameters:
                  first: {type: string, arg: 1}
                  second: {type: integer, arg: 2}
                  tag: {type: array, items: {type: string}, arg: -t, repeat: true, required: false}
                  list: {type: array, items: {type: integer}, arg: --list, required: false}
                  cache: {type: boolean, arg: --cache, false_arg: --no-cache}
                  level: {type: number, arg: --level=, required: false}
                  options: {type: object, arg: stdin, required: false}
    """
    script = '#!/bin/sh\nfor word in "$@"; do printf \'<%s>\' "$word"; done\ncat\n'
    world.skill("demo", front=front, scripts={"show.sh": script})
    tool = world.tools()["demo__show"]
    assert tool.input_schema["required"] == ["first", "second"]
    sent = {
        "first": "-a b",
        "second": 2,
        "tag": ["x", "y"],
        "list": [1, 2],
        "cache": False,
        "level": 0.5,
        "options": {"ä": 1},
    }
    assert tool.call(sent).text == '<-a b><2><-t><x><-t><y><--list><1><2><--no-cache><--level=0.5>{"ä": 1}'
    assert tool.call({"first": "a", "second": "7", "cache": True}).text == "<a><7><--cache>"
    assert "Shows its words." in tool.about


def test_a_declared_output_is_held_to(world: World) -> None:
    """`output: json` makes any JSON structured and everything else an error; `output: text` structures nothing."""
    front = "metadata: {skillrun: {scripts: {a.sh: {output: json}, b.sh: {output: json}, c.sh: {output: text}}}}\n"
    scripts = {
        "a.sh": "#!/bin/sh\necho 17\n",
        "b.sh": "#!/bin/sh\necho plain\n",
        "c.sh": "#!/bin/sh\necho '{\"a\": 1}'\n",
    }
    world.skill("demo", front=front, scripts=scripts)
    tools = world.tools()
    assert tools["demo__a"].call().structured == 17
    assert tools["demo__b"].call().text == "Error (output): the script was to print JSON and printed plain"
    assert tools["demo__c"].call().structured is None


def test_sub_commands_are_tools_of_their_own(world: World) -> None:
    """One tool for each sub-command, with the options of both parsers, and an entry can choose some."""
    script = """\
        #!/usr/bin/env python3
        import argparse, json
        p = argparse.ArgumentParser()
        p.add_argument("--root", default=".")
        sub = p.add_subparsers(dest="command", required=True)
        add = sub.add_parser("add", help="Adds one")
        add.add_argument("item")
        sub.add_parser("list", help="Lists all").add_argument("--all", action="store_true")
        print(json.dumps(vars(p.parse_args())))
    """
    world.skill("demo", scripts={"todo.py": script})
    tools = world.tools()
    assert list(tools) == ["demo__todo__add", "demo__todo__list"]
    assert tools["demo__todo__add"].call({"item": "--x", "root": "/r"}).structured == {
        "root": "/r",
        "command": "add",
        "item": "--x",
    }
    assert "Adds one" in tools["demo__todo__add"].about
    world.skill(
        "some",
        front="metadata: {skillrun: {scripts: {todo.py: {subcommands: {list: {}}}}}}\n",
        scripts={"todo.py": script},
    )
    assert [name for name in world.tools() if name.startswith("some")] == ["some__todo__list"]


EVENTS = {
    "sh": '#!/bin/sh\n[ -n "$SKILLRUN_EVENTS_FD" ] && echo \'{"progress": "half", "value": 1, "total": 2}\' >&"$SKILLRUN_EVENTS_FD"\necho out\n',
    "py": "#!/usr/bin/env python3\nimport json, os\nwith open(int(os.environ['SKILLRUN_EVENTS_FD']), 'w') as events:\n"
          "    print(json.dumps({'progress': 'half', 'value': 1, 'total': 2}), file=events)\nprint('out')\n",
    "mjs": "#!/usr/bin/env node\nimport fs from 'node:fs';\nfs.writeSync(Number(process.env.SKILLRUN_EVENTS_FD), "
           "JSON.stringify({progress: 'half', value: 1, total: 2}) + '\\n');\nconsole.log('out');\n",
}  # fmt: skip


@pytest.mark.parametrize("ending", EVENTS)
def test_progress_from_a_script(world: World, ending: str) -> None:
    """A JSON line on the events descriptor is told while the script runs, from sh, Python and Node."""
    if ending == "mjs" and shutil.which("node", path="/usr/bin:/bin") is None:
        pytest.skip("there is no node in /usr/bin")
    world.skill("demo", scripts={f"x.{ending}": EVENTS[ending]})
    heard: list[Any] = []
    box = world.box(
        on_progress=[
            lambda call, progress: heard.append((call.name, progress.message, progress.value, progress.total))
        ]
    )
    assert box.turn().call("demo__x").text == "out"
    assert heard == [("demo__x", "half", 1, 2)]


def test_events_and_files_of_a_run_that_is_not_confined(world: World) -> None:
    """Where the operator switched the sandbox off, both come all the same."""
    world.skill("demo", scripts={"x.sh": EVENTS["sh"] + 'echo data > "$SKILLRUN_OUTPUT_DIR/a.txt"\n'})
    heard: list[Any] = []
    box = world.box(
        ceiling="sandbox: {enabled: false}\n",
        on_progress=[lambda _, progress: heard.append(progress.message)],
    )
    outcome = box.turn().call("demo__x")
    assert (outcome.text, heard) == ("out\n[file: a.txt]", ["half"])
    assert outcome.result is not None
    assert outcome.result.backend == "passthrough"


def test_events_are_bounded_and_never_hold_a_script_up(world: World) -> None:
    """A flood, a line without an end, and lines that are no events: drained, at most 1,000 told, and the script ends."""
    script = """\
        #!/usr/bin/env python3
        import os
        fd = int(os.environ["SKILLRUN_EVENTS_FD"])
        os.write(fd, b"x" * 100_000 + b"\\n" + b"nonsense\\n[1]\\n" + b'{"progress": 5}\\n' + b'{"progress": "\\\\u001b[2Jhi", "value": NaN}\\n')
        for number in range(3000):
            os.write(fd, b'{"progress": "p"}\\n')
        os.write(fd, b'{"progress": "no end of line"}' * 1000)
        print("out")
    """
    world.skill("demo", scripts={"x.py": script})
    heard: list[Any] = []
    box = world.box(on_progress=[lambda _, progress: heard.append(progress)])
    assert box.turn().call("demo__x").text == "out"
    assert len(heard) == 1000
    assert (heard[0].message, heard[0].value) == ("hi", None)


def test_a_listener_that_fails_loses_nothing(world: World) -> None:
    """Callbacks before, after and in between that raise are logged, and the result comes all the same."""

    def broken(*_: Any) -> None:
        raise RuntimeError("listener")

    world.skill("demo", scripts={"x.sh": EVENTS["sh"]})
    box = world.box(on_call=[broken], on_result=[broken], on_progress=[broken])
    assert box.turn().call("demo__x").text == "out"


def test_files_of_a_script_come_with_its_result(world: World) -> None:
    """What lies in the output folder is attached: regular files only, no link, nothing large, at most sixteen."""
    world.file("secret.txt", "SECRET")
    script = """\
        #!/usr/bin/env python3
        import os
        os.chdir(os.environ["SKILLRUN_OUTPUT_DIR"])
        open("a.png", "wb").write(b"\\x89PNG")
        os.symlink(os.environ["WORKSPACE"] + "/secret.txt", "b.txt")
        os.mkfifo("c.txt"); os.mkdir("d"); open("d/inner.txt", "w").write("x")
        open("e.bin", "wb").truncate(6 << 20)
        open("f.txt", "w").write("x"); os.link("f.txt", "g.txt")
        print("made")
    """
    world.skill("demo", scripts={"x.py": script})
    outcome = world.tools()["demo__x"].call()
    assert [(one.name, one.media_type, one.data) for one in outcome.attachments] == [
        ("a.png", "image/png", b"\x89PNG")
    ]
    assert outcome.text == "made\n[file: a.png]"
    world.skill(
        "more",
        scripts={
            "x.sh": '#!/bin/sh\ncd "$SKILLRUN_OUTPUT_DIR"\nfor n in $(seq 30); do echo $n > f$n.txt; done\n'
        },
    )
    assert len(world.tools()["more__x"].call().attachments) == 16


def test_an_output_folder_that_became_a_link_is_not_followed(world: World) -> None:
    """A script swaps the folder itself for a link; nothing is taken through it."""
    world.file("secrets/key.txt", "SECRET")
    script = """\
        #!/usr/bin/env python3
        import os, shutil
        out = os.environ["SKILLRUN_OUTPUT_DIR"]
        os.rmdir(out)
        os.symlink(os.environ["WORKSPACE"] + "/secrets", out)
        print("swapped")
    """
    world.skill("demo", scripts={"x.py": script})
    outcome = world.tools()["demo__x"].call()
    assert (outcome.text, outcome.attachments) == ("swapped", ())


def test_a_call_that_a_person_must_agree_to(world: World) -> None:
    """`approval: true` of a skill, and `tools.approve` of the operator: nothing starts without a yes."""
    world.skill(
        "demo", front="metadata: {skillrun: {approval: true}}\n", scripts={"x.sh": "#!/bin/sh\necho ran\n"}
    )
    world.skill("net", front="network: true\n", scripts={"x.sh": "#!/bin/sh\necho ran\n"})
    world.skill("free", scripts={"x.sh": "#!/bin/sh\necho ran\n"})
    ceiling = "tools: {approve: [network]}\n"
    refused = "a person must agree to this call, and did not"
    for approve in (None, lambda *_: False, lambda *_: "yes", lambda *_: 1 / 0):
        turn = world.box(ceiling=ceiling, approve=approve).turn()
        assert turn.call("demo__x").text == f"Error (demo__x): {refused}"
        assert turn.call("net__x").is_error
        assert turn.call("free__x").text == "ran"
    turn = world.box(ceiling=ceiling, approve=lambda *_: True).turn()
    assert turn.call("demo__x").text == "ran"
    assert turn.call("net__x").text == "ran"


def test_a_skill_that_changed_since_is_not_called(world: World) -> None:
    """The schema was read from the files, so a call after a change is an error that says what to do."""
    folder = world.skill("demo", scripts={"x.sh": "#!/bin/sh\necho one\n"})
    turn = world.box().turn()
    assert turn.call("demo__x").text == "one"
    (folder / "scripts" / "x.sh").write_text("#!/bin/sh\necho two\n")
    assert "list them again" in turn.call("demo__x").text
    assert world.box().turn().call("demo__x").text == "two"


def test_calls_run_side_by_side_and_answer_in_order(world: World) -> None:
    """Four sleeps of 7.4 seconds together take less than six, and the outcomes stand in the order of the calls."""
    import time

    world.skill("demo", scripts={"x.py": "#!/usr/bin/env python3\nimport argparse, time\np = argparse.ArgumentParser()\n"
                                          "p.add_argument('n', type=float)\na = p.parse_args()\ntime.sleep(a.n)\nprint(a.n)\n"})  # fmt: skip
    turn = world.box(workers=4).turn()
    began = time.monotonic()
    outcomes = turn.answer_all([ToolCall("demo__x", {"n": n}, str(n)) for n in (2, 1.9, 1.8, 1.7)])
    assert [one.text for one in outcomes] == ["2.0", "1.9", "1.8", "1.7"]
    assert time.monotonic() - began < 6
    assert turn.answer_all([]) == []


def test_one_bad_skill_takes_no_other_with_it(world: World) -> None:
    """A skill with an error has no tools and is named with its place; the others are there."""
    world.skill("bad", front="fs_read: {a: b}\n", scripts={"x.sh": "#!/bin/sh\n"})
    world.skill("good", scripts={"x.sh": "#!/bin/sh\necho hi\n"})
    tools, problems = script_tools(world.runner())
    assert [tool.name for tool in tools] == ["good__x"]
    assert any("`bad` has no tools" in problem.message for problem in problems)


def test_tests_and_libraries_are_no_tools_unless_they_are_named(world: World) -> None:
    """What `list` calls no tool is none here; a `scripts` entry makes it one."""
    scripts = {
        "test_x.py": "#!/usr/bin/env python3\n",
        "lib.py": "def f():\n    pass\n",
        "run.py": "print(1)\n",
    }
    world.skill("demo", scripts=scripts)
    world.skill(
        "named", front="metadata: {skillrun: {scripts: {test_x.py: {description: d}}}}\n", scripts=scripts
    )
    assert list(world.tools()) == ["demo__run", "named__run", "named__test_x"]


def test_what_says_nothing_takes_words_and_text(world: World) -> None:
    """A script that can't be read takes `args` and `stdin`, and both arrive as they were sent."""
    world.skill("demo", scripts={"x.sh": "#!/bin/sh\nprintf '<%s>' \"$@\"\ncat\n"})
    tool = world.tools()["demo__x"]
    assert list(tool.input_schema["properties"]) == ["args", "stdin"]
    assert (
        tool.call({"args": ["a b", "--x", "", "it's $(id) `id`"], "stdin": "té\n"}).text
        == "<a b><--x><><it's $(id) `id`>té"
    )
    assert tool.call().text == "<>"


def test_nothing_is_executed_to_find_out(world: World) -> None:
    """Listing tools starts no interpreter and imports nothing, whatever a source does when it is run."""
    mark = world.workspace / "ran"
    evil = f"#!/usr/bin/env python3\nopen({str(mark)!r}, 'w')\nimport argparse\np = argparse.ArgumentParser()\np.add_argument('x', default=open({str(mark)!r}, 'w'))\np.parse_args()\n"
    world.skill("demo", scripts={"x.py": evil, "argparse.py": f"open({str(mark)!r}, 'w')\n"})
    assert "demo__x" in world.tools()
    assert not mark.exists()


def test_toolbox_closes_what_it_made(world: World) -> None:
    """The folder of saved results goes with the box; none is made when nothing was long."""
    world.skill("demo", scripts={"x.py": "#!/usr/bin/env python3\nprint('x' * 20000)\n"})
    with Toolbox(runner=world.runner()) as box:
        saved = box.turn().call("demo__x").saved
        assert saved is not None
        assert saved.exists()
    assert not saved.parent.exists()
