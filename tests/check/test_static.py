"""Static reading: what the readers see in scripts, what they leave out, and that nothing in a file stops them."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from skillrun.check.static import network, node, python, shell
from skillrun.check.static.use import Confidence

if TYPE_CHECKING:
    from skillrun.check.static.use import Reading

FILE = "${skill}/scripts/run.py"
FUZZ = settings(
    max_examples=int(os.environ.get("SKILLRUN_FUZZ", "60")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)


def told(reading: Reading) -> list[str]:
    """Write uses shortly: kind and value, `…` behind a path whose end is not known."""
    assert reading.fault is None, reading.fault
    return [f"{use.kind.value} {use.value}{'' if use.exact else '…'}" for use in reading.uses]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import requests\nrequests.get('https://a.example.com/x')", ["network a.example.com:443"]),
        ("import requests as r\nr.Session()", ["network None"]),
        ("from urllib.request import urlopen, Request\nurlopen(Request('http://a.example.com:8080/x'))", ["network a.example.com:8080"]),
        ("import httpx\nBASE = 'https://a.example.com'\nhttpx.get(f'{BASE}/{x}')", ["network a.example.com:443"]),
        ("import httpx\nhttpx.get(f'https://{host}/x')", ["network None"]),
        ("import httpx\nhttpx.get(f'https://a.{x}')", ["network None"]),
        ("import httpx\nhttpx.get('https://a' + x)", ["network None"]),
        ("import requests", ["network None"]),
        ("import urllib.parse\nurllib.parse.quote('x')", []),
        ("import requests\nrequests.utils.quote('x')\n", ["network None"]),  # the import stays a hint
        ("import socket\nsocket.socket(socket.AF_UNIX)", []),
        ("import socket\nsocket.create_connection(('a', 1))", ["network None"]),
        ("def f(requests):\n    requests.get('https://a.example.com')", []),
        ("open('a.txt')", ["read a.txt"]),
        ("open('a.txt', 'w')", ["write a.txt"]),
        ("open('a.txt', mode='ab')", ["write a.txt"]),
        ("open('a.txt', m)", []),
        ("open(path)", []),
        ("A = 'x'\nA = 'y'\nopen(A)", []),
        ("A = 'x'\ndef f(A):\n    open(A)", []),
        ("from pathlib import Path\nP = Path('a') / 'b'\nP.write_text('')", ["write a/b"]),
        ("from pathlib import Path\n(Path('a') / name).read_text()", ["read a/…"]),
        ("from pathlib import Path\nPath(__file__).resolve().parent.parent.joinpath('x').read_text()", ["read ${skill}/x"]),
        ("from pathlib import Path\nPath(__file__).parents[1].joinpath('x').read_text()", ["read ${skill}/x"]),
        ("from pathlib import Path\nPath(__file__).parents[5].joinpath('x').read_text()", []),
        ("import os\nos.makedirs(os.path.join(os.path.dirname(__file__), 'c'))", ["write ${skill}/scripts/c"]),
        ("from pathlib import Path\n(Path.home() / '.x').mkdir()", ["write ~/.x"]),
        ("import os\nopen(os.path.expanduser('~/.netrc'))", ["read ~/.netrc"]),
        ("import os\nopen(os.environ['HOME'] + '/.x')", ["read ~/.x", "env HOME"]),
        ("import tempfile\nopen(tempfile.mkdtemp() + '/x', 'w')", []),
        ("import os\nos.chdir(x)\nopen('a')\nopen('/b')", ["read /b"]),
        ("import shutil\nshutil.copy('a', 'b')", ["read a", "write b"]),
        ("import os\nos.getenv('A')\nos.environ.get('B')\nos.environ['C']\nos.environ['D'] = '1'", ["env A", "env B", "env C"]),
        ("N = 'A'\nimport os\nos.environ[N]\nos.environ[m]", ["env A"]),
        ("import subprocess\nsubprocess.run(['git', 'clone', 'https://a.example.com/x'])", ["program git", "network a.example.com:443"]),
        ("import subprocess\nsubprocess.run(['git', 'status'])", ["program git"]),
        ("import subprocess\nsubprocess.run('curl https://a.example.com | jq .', shell=True)", ["network a.example.com:443", "program curl", "program jq"]),
        ("import subprocess, sys\nsubprocess.run([sys.executable, '-m', 'x'])", []),
        ("CMD = ['ffmpeg', '-i']\nimport subprocess\nsubprocess.run(CMD)", ["program ffmpeg"]),
        ("import sqlite3\nsqlite3.connect(':memory:')\nsqlite3.connect('a.db')", ["write a.db"]),
        ("'''\nimport requests\nrequests.get()\n'''", []),
    ],
)  # fmt: skip
def test_python(source: str, expected: list[str]) -> None:
    """What a Python script does, by its syntax tree."""
    assert told(python.read(source.encode(), file=FILE)) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("curl https://a.example.com/x", ["network a.example.com:443", "program curl"]),
        ('curl "https://a.example.com/$1"', ["network a.example.com:443", "program curl"]),
        ("curl https://a$X", ["network None", "program curl"]),
        ('curl "https://$HOST/x"', ["network None", "program curl"]),
        ("echo curl", []),
        ("# curl x", []),
        ("echo '# no' ; wget x # yes", ["network None", "program wget"]),
        ("cat <<END\ncurl x\nEND\necho done", []),
        ("cat <<-'END'\n\tcurl x\n\tEND\nwget x", ["network None", "program wget"]),
        ('x="$(curl "https://a.example.com/$(id -u)")"', ["network a.example.com:443", "program curl"]),
        ("x=`curl https://a.example.com`", ["network a.example.com:443", "program curl"]),
        ("case $1 in\n curl|wget) echo ;;\n *) jq . ;;\nesac", ["program jq"]),
        ("curl() { echo; }\ncurl x", []),
        ("function curl { echo; }\ncurl x", []),
        ("if command -v curl >/dev/null; then echo; fi", ["write /dev/null"]),
        ("sudo -u me env -u X A=1 timeout 5 jq .", ["program jq"]),
        ("a=(x 'y) curl' # )\n curl)\njq .", ["program jq"]),
        ("git status; git push", ["program git", "network None", "program git"]),
        ("echo x > a.txt 2>&1", ["write a.txt"]),
        ("echo x > $OUT/a.txt", []),
        ("echo x > out/$1.txt", ["write out/…"]),
        ("az x --name <resource-group> --y", ["network None", "program az"]),
        ("cd $1\necho x > a.txt", []),
        ("cat ~/.netrc $HOME/.x", ["read ~/.netrc", "read ~/.x"]),
        ("mkdir -p a b/c", ["write a", "write b/c"]),
        ("cp x y/z", ["write y/z"]),
        ("echo ${API_KEY:?} ${API_URL} $PLAIN ${OTHER_ONE:-x} $X_TOKEN", ["env API_KEY", "env API_URL", "env OTHER_ONE", "env X_TOKEN"]),
        ("API_KEY=1\necho $API_KEY", []),
        ("API_KEY=${API_KEY:-x}\necho $API_KEY", ["env API_KEY"]),
        ("for API_KEY in a b; do echo $API_KEY; done", []),
        (". ./lib.sh\nlog_it x\njq .", ["program jq"]),
        ("for ((i=0; i<3; i++)); do echo $((i << 2)); done; jq .", ["program jq"]),
        ("[[ $x =~ ^(a|b)$ ]] && jq .", ["program jq"]),
        ("read -r -d '' X <<< 'curl'\njq .", ["program jq"]),
    ],
)  # fmt: skip
def test_shell(source: str, expected: list[str]) -> None:
    """What a shell script does, by its words."""
    assert told(shell.read(source)) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("await fetch('https://a.example.com/x')", ["network a.example.com:443"]),
        ("await fetch(`https://a.example.com/${id}`)", ["network a.example.com:443"]),
        ("await fetch(`https://${host}/x`)", ["network None"]),
        ("await fetch('https://a' + x)", ["network None"]),
        ("await fetch(`https://a${x}`)", ["network None"]),
        ("// fetch('https://a.example.com')\n/* fetch('x') */", []),
        ("const u = 'http://a // b'; fetch(u)", ["network None"]),
        ("git.fetch('x'); async fetch() {}", []),
        ("async function fetch(x) {}\nfetch('https://a.example.com')", []),
        ("import axios from 'axios'", ["network None"]),
        ("import type { X } from 'axios'", []),
        ("const https = require('node:https')", ["network None"]),
        ("import './local.js'", []),
        ("process.env.A; process.env['B']; process.env.C = 1; process.env.D === 'x'", ["env A", "env B", "env D"]),
        ("const { A, B: c } = process.env", ["env A", "env B"]),
        ("fs.writeFileSync('a.json', x); fs.readFileSync(`b/${y}`); fs.readFileSync(z)", ["write a.json", "read b/…"]),
        ("path.join(os.homedir(), '.x', 'y')", ["read ~/.x/y"]),
        ("import { execSync } from 'child_process'\nexecSync('git push'); re.exec('curl')", ["program git", "network None"]),
        ("exec('curl x')", []),
    ],
)  # fmt: skip
def test_node(source: str, expected: list[str]) -> None:
    """What a JavaScript or TypeScript file does, by its tokens."""
    assert sorted(told(node.read(source))) == sorted(expected)


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("https://a.example.com", "a.example.com:443"),
        ("http://a.example.com/x", "a.example.com:80"),
        ("wss://a.example.com:9/x", "a.example.com:9"),
        ("https://me:secret@a.example.com/x", "a.example.com:443"),
        ("http://[::1]:8/x", "[::1]:8"),
        ("https://a.", None),
        ("https://a.example.com:99999/", None),
        ("https://", None),
        ("a.example.com", None),
    ],
)
def test_hosts(text: str, host: str | None) -> None:
    """The host of an address, in the spelling of a request; none where the text does not say it whole."""
    assert network.host_in(text) == host


@pytest.mark.parametrize(
    "source",
    [
        b"def (:\n",
        b"\0",
        b"\xff\xfe",
        b"(" * 5_000,
        b"x = " + b"-" * 200_000 + b"1",
        b"x = " + b"[" * 50 + b"]" * 50,
        b"# coding: no-such\n",
        b"a" + b".b" * 100_000,
        b"f(" * 90 + b")" * 90,
        b"x = " + b"'a' + " * 5_000 + b"'b'\nopen(x)",
    ],
)
def test_nothing_in_a_python_file_stops_it(source: bytes) -> None:
    """Whatever a parser does with a file, there is a reading, and soon."""
    start = time.monotonic()
    assert python.read(source, file=FILE).language == "python"
    assert time.monotonic() - start < 20


@pytest.mark.parametrize(
    "text",
    ["$(" * 3_000, "`" * 3_001, '"' * 3_001, "${" * 5_000, "case x in " * 500, "(" * 20_000, "<<A " * 500 + "\n", "a=(" * 2_000, "<" * 9_000,
     "'" + "x" * 500_000, "\\\n" * 50_000, "$((" * 2_000, "<a " * 3_000],
)  # fmt: skip
def test_nothing_in_a_shell_script_stops_it(text: str) -> None:
    """Unbalanced, deep or long: the scan ends, in a time that grows with the length."""
    start = time.monotonic()
    assert shell.read(text).language == "shell"
    assert node.read(text).language == "node"
    assert time.monotonic() - start < 20


@FUZZ
@given(st.text(alphabet=" \n\t'\"`$(){}[]<>|&;#\\=-abcEOF/~:?!*%", max_size=200))
@example("esac)")
@example("case a in (b) c;; esac")
@example("$'\\'")
def test_random_text_is_read(text: str) -> None:
    """Random scripts: every reader ends with a reading, and every place it names is in the text."""
    lines = text.split("\n")
    for reading in (shell.read(text), node.read(text), python.read(text.encode(), file=FILE)):
        for use in reading.uses:
            assert 1 <= use.line <= len(lines)
            assert use.column >= 1


def test_a_server_is_a_guess() -> None:
    """A module that is there to connect is a hint; in a file that only listens, a guess."""
    (asks,) = node.read("const http = require('http'); http.get(x)").uses
    (serves,) = node.read("const http = require('http'); http.createServer(f).listen(1)").uses
    assert (asks.confidence, serves.confidence) == (Confidence.MEDIUM, Confidence.LOW)
