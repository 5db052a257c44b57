"""Interpreters: found by looking, over links, never where somebody else could have put one (B-12, C-03, C-33, C-34)."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from skillrun.errors import SkillError
from skillrun.skills import prefix
from skillrun.skills.disk import links_on_the_way
from skillrun.skills.interpreter import SYSTEM, family_of, find_interpreter
from skillrun.skills.model import Command, Interpreter, Starter
from skillrun.skills.prefix import _may_be_prefix
from skillrun.skills.scripts import read_command
from skillrun.skills.trust import distrust

if TYPE_CHECKING:
    from pathlib import Path

NATIVE = b"\x7fELF" + b"\x00" * 60


@pytest.fixture(autouse=True)
def _modes_as_written() -> object:
    """Make folders 0755 whatever the machine's umask is: modes are what these tests are about."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def program(path: Path, content: bytes = NATIVE, mode: int = 0o755) -> Path:
    """Make something that looks like a program, with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)
    return path


def find(
    name: str,
    *folders: object,
    system: tuple[str, ...] = (),
    refuse: tuple[Path, ...] = (),
    home: Path | None = None,
) -> Interpreter:
    """Look a program up on a PATH of these folders."""
    search = ":".join(map(str, folders))
    return find_interpreter(
        Command(Starter.SHEBANG, name), search=search, system=system, refuse=refuse, home=home
    )


def refused(name: str, *folders: object, refuse: tuple[Path, ...] = ()) -> SkillError:
    """Return the error of a lookup that finds nothing."""
    with pytest.raises(SkillError) as caught:
        find(name, *folders, refuse=refuse)
    return caught.value


def test_the_first_folder_on_path_wins(tmp_path: Path) -> None:
    """The order of PATH decides, and the system's folders come after it."""
    one, two = program(tmp_path / "one/tool"), program(tmp_path / "two/tool")
    assert find("tool", tmp_path / "one", tmp_path / "two").path == one
    assert find("tool", tmp_path / "none", tmp_path / "two", system=(str(tmp_path / "one"),)).path == two
    assert find("tool", system=(str(tmp_path / "one"),)).path == one


def test_b_12_a_missing_interpreter_is_named(tmp_path: Path) -> None:
    """B-12 a, b: the message names the interpreter and never says that the script is missing."""
    for line, name in ((b"#!/bin/bash42\n", "/bin/bash42"), (b"#!/usr/bin/env nosuchlang\n", "nosuchlang")):
        command, _ = read_command(line, "script.sh")
        assert command is not None
        with pytest.raises(SkillError) as caught:
            find_interpreter(command, search=str(tmp_path), home=None)
        assert caught.value.problem.rule == "interpreter-not-found"
        assert f"`{name}`" in caught.value.problem.message
        assert "script" not in caught.value.problem.message


def test_b_12_python_without_a_line_is_python3(tmp_path: Path) -> None:
    """B-12 c: `tool.py` means python3; a `python` that is not there is python3 too, never the other way round."""
    python3 = program(tmp_path / "bin/python3")
    command, _ = read_command(b"print(1)\n", "tool.py")
    assert command is not None
    assert find(command.program, tmp_path / "bin").path == python3
    assert find("python", tmp_path / "bin").path == python3
    program(tmp_path / "old/python")
    assert refused("python3", tmp_path / "old").problem.rule == "interpreter-not-found"
    assert find("python", tmp_path / "bin", tmp_path / "old").path == tmp_path / "old/python"


def test_c_03_every_link_on_the_way_is_named(tmp_path: Path) -> None:
    """C-03: a chain over a version-free folder: each hop, the real file, the environment and the install root."""
    home = tmp_path / "me"
    store = home / ".local/share/uv/python"
    real = program(store / "cpython-3.12.13/bin/python3.12")
    (store / "cpython-3.12.13/lib/python3.12").mkdir(parents=True)
    (store / "cpython-3.12.13/lib/python3.12/os.py").write_text("")
    (store / "cpython-3.12").symlink_to("cpython-3.12.13")
    venv = home / "work/venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "pyvenv.cfg").write_text(f"home = {store}/cpython-3.12/bin\nversion = 3.12.13\n")
    (venv / "bin/python3").symlink_to("python")
    (venv / "bin/python").symlink_to(store / "cpython-3.12/bin/python3.12")
    found = find("python3", venv / "bin", home=home)
    assert found.path == venv / "bin/python3"
    assert found.real == real
    assert set(found.links) == {venv / "bin/python3", venv / "bin/python", store / "cpython-3.12"}
    assert set(found.prefixes) == {venv, store / "cpython-3.12.13"}
    assert found.family == "python"


def test_c_03_links_on_the_way_to_the_install_are_named(tmp_path: Path) -> None:
    """The folder that `pyvenv.cfg` names is reached by Python itself, over links the program's own path lacks."""
    folder = install(tmp_path / "py-3.12.13", "lib/python3.12/os.py", "python3")
    (tmp_path / "py-3.12").symlink_to("py-3.12.13")
    (tmp_path / "venv/bin").mkdir(parents=True)
    (tmp_path / "venv/bin/python3").symlink_to(folder / "python3")
    (tmp_path / "venv/pyvenv.cfg").write_text(f"HOME = {tmp_path}/py-3.12/bin\n")
    found = find("python3", tmp_path / "venv/bin")
    assert found.links == (tmp_path / "venv/bin/python3", tmp_path / "py-3.12")
    assert set(found.prefixes) == {tmp_path / "venv", tmp_path / "py-3.12.13"}


def test_c_03_links_of_parents_are_named_at_their_physical_place(tmp_path: Path) -> None:
    """A link above the program (`/bin -> usr/bin`) is a node too, and each node has its own parent physical."""
    program(tmp_path / "usr/bin/tool-1")
    (tmp_path / "usr/bin/tool").symlink_to("tool-1")
    (tmp_path / "bin").symlink_to("usr/bin")
    found = find("tool", tmp_path / "bin")
    assert found.path == tmp_path / "bin/tool"
    assert found.links == (tmp_path / "bin", tmp_path / "usr/bin/tool")


def test_links_follow_the_kernels_rules(tmp_path: Path) -> None:
    """`..` behind a link goes up from where the link leads; circles and missing ends are errors."""
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/file").write_text("")
    (tmp_path / "link").symlink_to("a/b")
    assert links_on_the_way(tmp_path / "link/../file") == (
        (str(tmp_path / "link"),),
        str(tmp_path / "a/file"),
    )
    (tmp_path / "x").symlink_to("y")
    (tmp_path / "y").symlink_to("x")
    with pytest.raises(OSError, match="circle"):
        links_on_the_way(tmp_path / "x")
    with pytest.raises(FileNotFoundError):
        links_on_the_way(tmp_path / "none")


@pytest.mark.parametrize(
    "line", [b"#!/usr/bin/env python3\n", b"#!/usr/bin/env -S python3 -u\n", b"#!/usr/bin/env bash\n"]
)
def test_c_33_env_is_looked_through_on_this_machine(line: bytes) -> None:
    """C-33: what `env` would start is found and is a program that runs, with its arguments kept."""
    command, _ = read_command(line, "x")
    assert command is not None
    found = find_interpreter(command, search="", home=None)
    assert found.path.name == command.program
    assert found.args == command.args
    told = subprocess.run([found.path, "--version"], capture_output=True, text=True, check=True)
    assert command.program.rstrip("3") in told.stdout.lower()


def test_c_34_the_path_found_is_absolute_and_its_own(tmp_path: Path) -> None:
    """C-34: of two on PATH the first is taken, and the answer is a full path that nobody looks up again."""
    program(tmp_path / "one/python3")
    program(tmp_path / "two/python3")
    found = find("python3", tmp_path / "one", tmp_path / "two")
    assert (found.path, found.real) == (tmp_path / "one/python3", tmp_path / "one/python3")


def test_relative_and_empty_entries_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The current folder is never searched, however PATH names it."""
    program(tmp_path / "tool")
    program(tmp_path / "bin/tool")
    program(tmp_path / "bin/sh")
    monkeypatch.chdir(tmp_path)
    assert refused("tool", "", ".", "bin", "./bin", "~").problem.rule == "interpreter-not-found"
    assert (
        refused("sh", "bin", "usr/bin").problem.rule == "interpreter-not-found"
    )  # nor read as if a slash stood there


@pytest.mark.parametrize(
    ("mode", "word"), [(0o777, "everybody"), (0o757, "everybody"), (0o1777, "everybody")]
)
def test_folders_that_others_write_are_skipped(tmp_path: Path, mode: int, word: str) -> None:
    """A folder on PATH that anybody may write gives no program, nor does one below it; the error says so."""
    program(tmp_path / "open/tool")
    program(tmp_path / "open/sub/tool")
    (tmp_path / "open").chmod(mode)
    wrong = refused("tool", tmp_path / "open")
    assert word in (wrong.problem.help or "")
    if not mode & 0o1000:  # in a sticky folder nobody else can replace what is ours
        assert word in (refused("tool", tmp_path / "open/sub").problem.help or "")
    program(tmp_path / "good/tool")
    (tmp_path / "open/tool").unlink()
    (tmp_path / "open/tool").symlink_to("../good/tool")  # good as long as nobody turns it elsewhere
    assert find("tool", tmp_path / "open", tmp_path / "good").path == tmp_path / "good/tool"


def test_a_group_is_others(tmp_path: Path) -> None:
    """Writable by a group that is not the caller's alone counts as writable."""
    program(tmp_path / "shared/tool")
    (tmp_path / "shared").chmod(0o775)
    if os.geteuid() == 0:
        os.chown(tmp_path / "shared", 0, 1)
        assert distrust(str(tmp_path / "shared")) == "writable by a group"
        assert "group" in (refused("tool", tmp_path / "shared").problem.help or "")
        os.chown(tmp_path / "shared", 0, 0)
        assert distrust(str(tmp_path / "shared")) is None
    else:
        other = next((gid for gid in os.getgroups() if gid != os.getgid()), None)
        if other is None:
            pytest.skip("this user has one group")
        os.chown(tmp_path / "shared", -1, other)
        assert distrust(str(tmp_path / "shared")) == "writable by a group"


def test_what_another_user_owns_is_skipped(ordinary: Path) -> None:
    """A folder of some other user gives no program, though its mode is tight."""
    if os.getuid() != 0:
        pytest.skip("needs root to give a folder away")
    os.seteuid(0)
    program(ordinary / "theirs/tool")
    os.chown(ordinary / "theirs", 12345, 12345)
    os.chown(ordinary / "theirs/tool", 12345, 12345)
    os.seteuid(65534)
    assert "another user" in (refused("tool", ordinary / "theirs").problem.help or "")


def test_a_program_that_others_write_is_skipped(tmp_path: Path) -> None:
    """The file itself, and where a link of it leads, are held to the same rule."""
    program(tmp_path / "bin/tool", mode=0o777)
    assert "everybody" in (refused("tool", tmp_path / "bin").problem.help or "")
    program(tmp_path / "open/real")
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "links").mkdir()
    (tmp_path / "links/tool").symlink_to(tmp_path / "open/real")
    assert "everybody" in (refused("tool", tmp_path / "links").problem.help or "")


def test_folders_below_the_workspace_are_skipped(tmp_path: Path) -> None:
    """What a script could have written into the workspace never runs the next one, nor through a link out of it."""
    workspace = tmp_path / "ws"
    program(workspace / "bin/tool")
    program(tmp_path / "ws-other/tool")
    (tmp_path / "links").mkdir()
    (tmp_path / "links/tool").symlink_to(workspace / "bin/tool")
    (tmp_path / "linked-bin").symlink_to(workspace / "bin")
    (workspace / "lib").mkdir()
    (workspace / "lib/tool").symlink_to(tmp_path / "ws-other/tool")
    for folder in (workspace / "bin", workspace / "lib", tmp_path / "links", tmp_path / "linked-bin"):
        assert "workspace" in (refused("tool", folder, refuse=(workspace,)).problem.help or "")
    assert find("tool", tmp_path / "ws-other", refuse=(workspace,)).path == tmp_path / "ws-other/tool"


def test_scripts_and_shims_are_passed_over(tmp_path: Path) -> None:
    """A wrapper chooses by the current folder what it starts: it is not the interpreter that was checked."""
    program(tmp_path / "wrap/tool", b"#!/bin/sh\nexec real\n")
    program(tmp_path / "shims/tool")
    (tmp_path / "via").mkdir()
    (tmp_path / "via/tool").symlink_to("../shims/tool")
    real = program(tmp_path / "bin/tool")
    assert (
        find("tool", tmp_path / "wrap", tmp_path / "shims", tmp_path / "via", tmp_path / "bin").path == real
    )
    help_ = refused("tool", tmp_path / "wrap", tmp_path / "shims", tmp_path / "via").problem.help or ""
    assert "itself a script" in help_
    assert "shims" in help_


def test_what_is_no_program_is_passed_over(tmp_path: Path) -> None:
    """Folders, files without exec bit, dead links and FIFOs on PATH are not candidates."""
    (tmp_path / "a/tool").mkdir(parents=True)
    program(tmp_path / "b/tool", mode=0o644)
    for name in "cd":
        (tmp_path / name).mkdir()
    (tmp_path / "c/tool").symlink_to("nowhere")
    os.mkfifo(tmp_path / "d/tool", 0o755)
    real = program(tmp_path / "e/tool")
    assert find("tool", *(tmp_path / name for name in "abcde")).path == real


@pytest.mark.parametrize("kind", ["plain", "folder", "fifo", "script"])
def test_an_absolute_program_is_used_as_given_or_refused(tmp_path: Path, kind: str) -> None:
    """The path of an interpreter line is not searched for; what can't be started is said before the run."""
    path = tmp_path / "prog"
    assert find(str(program(tmp_path / "deep/tool"))).path == tmp_path / "deep/tool"
    if kind == "plain":
        program(path, mode=0o644)
    elif kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path, 0o755)
    else:
        program(path, b"#!/bin/sh\n")
    wanted = "interpreter-is-script" if kind == "script" else "interpreter-not-executable"
    assert refused(str(path)).problem.rule == wanted


def test_a_command_without_program_has_no_interpreter() -> None:
    """A native executable is started by itself; asking is a mistake of the caller."""
    with pytest.raises(ValueError, match="native"):
        find_interpreter(Command(Starter.NATIVE, ""), search="", home=None)


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("python3.12", "python"),
        ("python3.13t", "python"),
        ("pypy3", "python"),
        ("node", "node"),
        ("bash", "bash"),
        ("dash", "sh"),
        ("ruby3.2", "ruby"),
        ("perl5.36.0", "perl"),
        ("pythonic", "other"),
        ("deno", "other"),
    ],
)
def test_the_family_follows_the_name(tmp_path: Path, name: str, family: str) -> None:
    """Versions belong to the family, longer words do not."""
    program(tmp_path / name)
    assert find(name, tmp_path).family == family
    assert family_of(f"/usr/bin/{name}") == family


def test_the_name_it_is_called_by_counts_first(tmp_path: Path) -> None:
    """`sh` that is bash is `sh`: that is how it behaves."""
    program(tmp_path / "bash")
    (tmp_path / "sh").symlink_to("bash")
    assert find("sh", tmp_path).family == "sh"


def install(prefix: Path, landmark: str, name: str) -> Path:
    """Make an install of an interpreter in PREFIX, recognisable by its landmark."""
    (prefix / landmark).parent.mkdir(parents=True)
    (prefix / landmark).write_text("")
    return program(prefix / "bin" / name).parent


@pytest.mark.parametrize(
    ("place", "landmark", "name"),
    [
        (".pyenv/versions/3.11.7", "lib/python3.11/os.py", "python3"),
        ("miniconda3", "lib/python3.12/os.py", "python3"),
        (".nvm/versions/node/v22.1.0", "include/node/node_version.h", "node"),
        (".volta/tools/image/node/20", "lib/node_modules/npm/package.json", "node"),
        (".rbenv/versions/3.3.0", "lib/ruby/3.3.0/set.rb", "ruby"),
        ("perl5/perlbrew/perls/perl-5.38.0", "lib/5.38.0/strict.pm", "perl"),
    ],
)
def test_installs_in_a_home_are_recognised(tmp_path: Path, place: str, landmark: str, name: str) -> None:
    """The version's own folder is the prefix, no more; without its landmark there is none."""
    folder = install(tmp_path / place, landmark, name)
    assert find(name, folder, home=tmp_path).prefixes == (tmp_path / place,)
    (tmp_path / place / landmark).unlink()
    assert find(name, folder, home=tmp_path).prefixes == ()


@pytest.mark.parametrize("place", ["", ".local", ".local/share"])
def test_a_prefix_is_never_a_home_or_above(tmp_path: Path, place: str) -> None:
    """An interpreter put straight into a home or `~/.local` brings its file alone."""
    home = tmp_path / "users/me"
    home.mkdir(parents=True)
    folder = install(home / place, "lib/python3.11/os.py", "python3")
    assert find("python3", folder, home=home).prefixes == ()
    above = install(tmp_path / "users", "lib/python3.11/os.py", "python3")
    assert find("python3", above, home=home).prefixes == ()


@pytest.mark.parametrize("prefix", ["/", "/home", "/Users", "/root", "/home/me", "/Users/me", "/var/root"])
def test_anybodys_home_is_a_home(prefix: str) -> None:
    """Without knowing the caller's home, the folders where systems keep homes are no prefixes either."""
    assert not _may_be_prefix(prefix, None)
    assert _may_be_prefix("/home/me/.pyenv/versions/3.12.1", None)


@pytest.mark.parametrize("secret", [".ssh", ".aws", ".env", ".netrc", ".git", ".bashrc"])
def test_a_prefix_is_never_above_a_secret(tmp_path: Path, secret: str) -> None:
    """A folder with keys or passwords in it is no install, whatever else it looks like."""
    folder = install(tmp_path / "x", "lib/python3.11/os.py", "python3")
    assert find("python3", folder).prefixes == (tmp_path / "x",)
    (tmp_path / "x" / secret).symlink_to("nowhere")
    assert find("python3", folder).prefixes == ()


@pytest.mark.parametrize(
    "config",
    [
        "home = /\n",
        "home = {home}/bin\n",
        "home = relative/bin\n",
        "home = /none\n",
        "",
        "home = \x00\n",
        "\xff\n",
    ],
)
def test_a_hostile_environment_gains_nothing(tmp_path: Path, config: str) -> None:
    """A `pyvenv.cfg` is somebody's text: what it names is a prefix only with a landmark, and never a home."""
    home = tmp_path / "me"
    install(home, "lib/python3.11/os.py", "python3")
    program(tmp_path / "venv/bin/python3")
    (tmp_path / "venv/pyvenv.cfg").write_text(config.format(home=home), encoding="latin-1")
    assert find("python3", tmp_path / "venv/bin", home=home).prefixes == (tmp_path / "venv",)
    (home / "pyvenv.cfg").write_text(config.format(home=home), encoding="latin-1")
    assert find("python3", home / "bin", home=home).prefixes == ()


def test_an_environment_of_an_environment_ends(tmp_path: Path) -> None:
    """Environments that name each other do not go round for ever."""
    for one, other in (("a", "b"), ("b", "a")):
        program(tmp_path / one / "bin/python3")
        (tmp_path / one / "pyvenv.cfg").write_text(f"home = {tmp_path / other}/bin\n")
    assert set(find("python3", tmp_path / "a/bin").prefixes) == {tmp_path / "a", tmp_path / "b"}


def test_the_systems_own_need_no_prefix() -> None:
    """What lies below `/usr` is granted as the system's, so there is no prefix to show."""
    found = find_interpreter(Command(Starter.SHEBANG, "sh"), search="", home=None)
    assert found.prefixes == ()
    assert SYSTEM == ("/usr/local/bin", "/usr/bin", "/bin")


def test_nothing_is_executed(tmp_path: Path) -> None:
    """Law 10: the lookup identifies a program without starting it."""
    tool = tmp_path / "bin/python3"
    program(tool, b"\x7fELF")
    before = os.times()
    found = find("python3", tool.parent)
    after = os.times()
    assert found.path == tool
    assert (after.children_user, after.children_system) == (before.children_user, before.children_system)


def test_a_package_tree_inside_a_system_folder_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Homebrew on Intel lies in /usr/local: macOS policies open /usr/bin and /usr/lib, not that."""
    base = tmp_path.resolve()
    needs = [base / "Cellar", base / "opt"]
    for folder in needs:
        folder.mkdir()
    tree = {"under": str(needs[0]), "needs": [*map(str, needs), str(base / "not-there")]}
    table = {**prefix._table(), "trees": [tree], "system": [{"path": str(base)}]}
    monkeypatch.setattr(prefix, "_table", lambda: table)
    real = str(needs[0] / "node/22/bin/node")

    assert prefix.find_prefixes(real, real, "node", home=None)[0] == tuple(map(str, needs))
    assert prefix.find_prefixes(f"{base}/bin/node", f"{base}/bin/node", "node", home=None)[0] == ()
