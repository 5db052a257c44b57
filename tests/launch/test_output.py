"""What scripts print: endless, one line, not text, and passed on with back-pressure."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from arena import MODES, set_grace

from skillrun import Termination
from skillrun.launch.capture import PassOn

if TYPE_CHECKING:
    from arena import Arena

_OWNER = """
import json, sys
sys.path.insert(0, {kill!r})
from pathlib import Path
from arena import Arena
arena = object.__new__(Arena)
arena.root, arena.token = Path({root!r}), {token!r}
def kilobytes(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1])
with arena.runner({mode!r}) as runner:
    runner.run("demo", "small.sh")
    # ru_maxrss would be that of whoever forked us, pytest for one; this peak starts anew (proc(5)).
    Path("/proc/self/clear_refs").write_text("5")
    before = kilobytes("VmRSS:")
    result = runner.run("demo", "go.sh", timeout={timeout})
    peak = kilobytes("VmHWM:")
print(json.dumps(dict(grown=(peak - before) * 1024, peak=peak * 1024, termination=result.termination.value,
    took=result.duration_s, out=[len(result.stdout.text), result.stdout.bytes, result.stdout.truncated],
    err=[len(result.stderr.text), result.stderr.bytes, result.stderr.truncated])))
"""


def _measure(arena: Arena, mode: str, timeout: float) -> dict[str, object]:
    """Run the script in a program of its own and return what it measured of itself."""
    arena.script("#!/bin/sh\necho\n", name="small.sh")
    kill = str(Path(__file__).parent.parent / "kill")
    text = _OWNER.format(kill=kill, root=str(arena.root), token=arena.token, mode=mode, timeout=timeout)
    done = subprocess.run(
        [sys.executable, "-c", text], stdout=subprocess.PIPE, timeout=timeout + 20, check=True
    )
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("mode", ["confined", pytest.param("passthrough", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "script",
    [
        pytest.param("yes", marks=pytest.mark.slow),
        pytest.param("yes >&2", marks=pytest.mark.slow),
        "yes & yes >&2",
        "yes 12345678 & while :; do printf x; done",
    ],
)
def test_endless_output_takes_no_memory(arena: Arena, script: str, mode: str) -> None:
    """Case B-05: both streams drained and counted, cut to the limit; the caller grows by 16 MB at most."""
    arena.script(f"#!/bin/sh\n{script}\n", name="go.sh")
    found = _measure(arena, mode, timeout=0.5)
    assert found["termination"] == "timed_out"
    assert float(str(found["took"])) < 0.5 + 2.0 + 1.0
    assert int(str(found["grown"])) < 16 << 20, found
    assert int(str(found["peak"])) < 100 << 20, found
    streams = [found["out"], found["err"]]
    flooded = [stream for stream in streams if isinstance(stream, list) and stream[1] > 0]
    assert flooded
    for length, seen, truncated in flooded:
        assert truncated == (seen > 1 << 20)
        assert length <= (1 << 20) + 100
    assert max(stream[1] for stream in flooded) > 10 << 20, "the script was not held up"


@pytest.mark.parametrize("mode", MODES)
def test_one_giant_line(arena: Arena, mode: str) -> None:
    """Case B-06: 50 MB without a newline are cut by bytes; the end is the true end, nothing is added."""
    arena.script("#!/bin/sh\nhead -c 50000000 /dev/zero | tr '\\0' x\nprintf end\n", name="go.sh")
    arena.script("#!/bin/sh\nprintf abc\n", name="short.sh")
    with arena.runner(mode) as runner:
        result = runner.run("demo", "go.sh", timeout=60)
        short = runner.run("demo", "short.sh")
    assert result.termination is Termination.EXITED
    assert (result.stdout.bytes, result.stdout.truncated) == (50_000_003, True)
    assert result.stdout.text.startswith("xxx")
    assert result.stdout.text.endswith("xxxend")
    assert len(result.stdout.text) < (1 << 20) + 100
    assert (short.stdout.text, short.stdout.bytes, short.stdout.truncated) == ("abc", 3, False)
    arena.assert_clean()


@pytest.mark.parametrize("mode", MODES)
def test_output_that_is_not_utf8(arena: Arena, mode: str) -> None:
    """Case B-07: no exception, the exit code is kept, NUL does not end the text, and it can be written as JSON."""
    arena.script(
        "#!/bin/sh\nprintf 'ok \\377\\376\\000 end'; printf '\\355\\240\\200' >&2; exit 3\n", name="go.sh"
    )
    with arena.runner(mode) as runner:
        result = runner.run("demo", "go.sh")
    assert (result.exit_code, result.stdout.text) == (3, "ok \ufffd\ufffd\0 end")
    assert result.stdout.bytes == 10
    json.dumps([result.stdout.text, result.stderr.text], ensure_ascii=False).encode()
    arena.assert_clean()


def test_output_is_read_after_the_script_has_ended(arena: Arena) -> None:
    """What lies in the pipes when the launcher says `ended` is not lost: many runs that print a pipe full."""
    arena.script("#!/bin/sh\nhead -c 60000 /dev/zero\nhead -c 60001 /dev/zero >&2\n", name="go.sh")
    with arena.runner() as runner:
        for _ in range(20):
            result = runner.run("demo", "go.sh")
            assert (result.stdout.bytes, result.stderr.bytes) == (60000, 60001)
    arena.assert_clean()


@pytest.mark.parametrize("mode", MODES)
def test_what_lies_in_the_pipe_at_the_end_is_passed_on(arena: Arena, mode: str) -> None:
    """A script that fills its pipe and ends at once: passing on goes in small steps, and all of it arrives."""
    arena.script("import os\nos.write(1, b'x' * 65536)\nos._exit(0)\n")
    reading, writing = os.pipe()
    got = bytearray()

    def read() -> None:
        time.sleep(0.1)
        while chunk := os.read(reading, 4096):
            got.extend(chunk)

    reader = threading.Thread(target=read)
    reader.start()
    with arena.runner(mode) as runner:
        for _ in range(5):
            assert runner.run("demo", "go.py", sinks=(PassOn(writing), PassOn(writing))).ok
    os.close(writing)
    reader.join(10)
    os.close(reading)
    assert len(got) == 5 * 65536
    arena.assert_clean()


@pytest.mark.parametrize("mode", MODES)
def test_output_that_is_passed_on_waits_for_its_reader(arena: Arena, mode: str) -> None:
    """Back-pressure: a slow reader slows the script down, gets every byte in order, and nothing is kept."""
    arena.script(
        textwrap.dedent("""
        import os
        for number in range(40000):
            os.write(1, b"%07d\\n" % number)
        os.write(2, b"done\\n")
        """)
    )
    reading, writing = os.pipe()
    errors, errors_end = os.pipe()
    got = bytearray()

    def read() -> None:
        time.sleep(0.5)
        while chunk := os.read(reading, 50_000):
            got.extend(chunk)

    reader = threading.Thread(target=read)
    with arena.runner(mode) as runner:
        reader.start()
        before = time.monotonic()
        result = runner.run("demo", "go.py", timeout=30, sinks=(PassOn(writing), PassOn(errors_end)))
        assert time.monotonic() - before > 0.4, "320 kB went into a pipe that holds 64"
        os.close(writing)
        reader.join(10)
    assert bytes(got) == b"".join(b"%07d\n" % number for number in range(40000))
    assert (result.exit_code, result.stdout.bytes, result.stdout.text) == (0, 320_000, "")
    assert os.read(errors, 100) == b"done\n"
    for descriptor in (reading, errors, errors_end):
        os.close(descriptor)
    arena.assert_clean()


@pytest.mark.parametrize("mode", MODES)
def test_both_streams_passed_on_to_one_descriptor(arena: Arena, mode: str) -> None:
    """A terminal or `2>&1`: both streams arrive whole, and the call ends."""
    arena.script(
        "#!/bin/sh\nhead -c 300000 /dev/zero | tr '\\0' o &\nhead -c 300000 /dev/zero | tr '\\0' e >&2\nwait\n",
        name="go.sh",
    )
    reading, writing = os.pipe()
    got = bytearray()

    def read() -> None:
        time.sleep(0.2)
        while chunk := os.read(reading, 4096):
            got.extend(chunk)

    reader = threading.Thread(target=read)
    reader.start()
    with arena.runner(mode) as runner:
        result = runner.run("demo", "go.sh", timeout=20, sinks=(PassOn(writing), PassOn(writing)))
    os.close(writing)
    reader.join(10)
    assert result.termination is Termination.EXITED
    assert (got.count(b"o"), got.count(b"e")) == (300_000, 300_000)
    os.close(reading)
    arena.assert_clean()


@pytest.mark.parametrize("mode", MODES)
def test_a_reader_that_is_gone_ends_the_script_as_in_any_pipe(arena: Arena, mode: str) -> None:
    """`skillrun run … | head -1`: the script gets SIGPIPE, the call returns, and no exception comes out."""
    arena.script("#!/bin/sh\nexec yes\n", name="go.sh")
    reading, writing = os.pipe()
    with arena.runner(mode) as runner:
        threading.Timer(0.3, os.close, (reading,)).start()
        result = runner.run("demo", "go.sh", timeout=20, sinks=(PassOn(writing), PassOn(writing)))
    os.close(writing)
    assert (result.termination, result.signal) == (Termination.SIGNALED, 13)
    assert result.duration_s < 2
    arena.assert_clean()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("streams", ["one", "both"])
def test_a_reader_that_has_stopped_reading_does_not_stop_the_deadline(
    arena: Arena, monkeypatch: pytest.MonkeyPatch, mode: str, streams: str
) -> None:
    """One deadline over start, output and exit: a stalled reader delays neither the death nor the result for ever."""
    set_grace(monkeypatch, 0.2)
    arena.script(
        "import os\nos.write(1, b'ready\\n')\nwhile True:\n    os.write(1, b'x' * 4096)\n    os.write(2, b'y' * 4096)\n"
    )
    reading, writing = os.pipe()
    errors, errors_end = os.pipe()
    try:
        with arena.runner(mode) as runner:
            second = writing if streams == "both" else errors_end
            done = threading.Event()

            def work() -> None:
                runner.run("demo", "go.py", timeout=0.5, sinks=(PassOn(writing), PassOn(second)))
                done.set()

            thread = threading.Thread(target=work, daemon=True)
            thread.start()
            time.sleep(0.5 + 0.2 + 0.8)
            assert not arena.survivors(), "the script outlived its deadline"
            returned = done.wait(1.5)
            for descriptor in (reading, errors):
                os.set_blocking(descriptor, False)
            last = time.monotonic() + 5
            while thread.is_alive() and time.monotonic() < last:  # let a stuck call go
                for descriptor in (reading, errors):
                    with contextlib.suppress(BlockingIOError):
                        os.read(descriptor, 1 << 20)
                time.sleep(0.005)
            assert returned, "the call is stuck behind its reader"
    finally:
        for descriptor in (reading, writing, errors, errors_end):
            os.close(descriptor)


def test_output_passed_on_to_a_non_blocking_pipe(arena: Arena) -> None:
    """A descriptor that somebody made non-blocking (node does) loses nothing."""
    arena.script("#!/bin/sh\nhead -c 500000 /dev/zero\n", name="go.sh")
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    got = bytearray()

    def read() -> None:
        time.sleep(0.3)  # until the pipe is full
        while chunk := os.read(reading, 1000):
            got.extend(chunk)

    reader = threading.Thread(target=read)
    reader.start()
    with arena.runner() as runner:
        result = runner.run("demo", "go.sh", timeout=20, sinks=(PassOn(writing), PassOn(writing)))
    os.close(writing)
    reader.join(10)
    os.close(reading)
    assert (result.exit_code, len(got)) == (0, 500_000)
    arena.assert_clean()
