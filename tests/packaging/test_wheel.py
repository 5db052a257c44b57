"""The wheel carries the profiles and the example skills, runnable, and nothing of the workshop."""

from __future__ import annotations

import email.parser
import os
import stat
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from skillrun import resources

ROOT = Path(__file__).resolve().parent.parent.parent
KINDS = ("profiles", "skills")


def build(source: Path, out: Path, target: str) -> Path:
    """Build one distribution with the project's own build backend, offline, and return its file."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(out)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = out.iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from the checkout."""
    return build(ROOT, tmp_path_factory.mktemp("wheel"), "wheel")


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel alone into a folder of its own; its dependencies come from the running environment."""
    folder = tmp_path_factory.mktemp("site")
    options = ["--quiet", "--no-deps", "--no-index", "--disable-pip-version-check", "--target", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(wheel)], check=True)
    return folder


def python(site: Path, program: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a program against the installed wheel instead of the checkout."""
    environment = {**os.environ, "PYTHONPATH": str(site)}
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def shipped(kind: str) -> dict[str, bool]:
    """Map each file of one kind of data to whether it is executable."""
    return {
        str(path.relative_to(ROOT)): bool(path.stat().st_mode & stat.S_IXUSR)
        for path in (ROOT / kind).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_profiles_hold_tables_and_templates_only() -> None:
    """What is shipped as policy was written as policy: no profile that a run once wrote lies among it."""
    kinds = {"".join(Path(name).suffixes) for name in shipped("profiles")}
    assert kinds == {".yaml", ".sb.j2"}


@pytest.mark.parametrize("kind", KINDS)
def test_every_file_of_the_data_is_inside_with_its_exec_bit(wheel: Path, kind: str) -> None:
    """Profiles and skills lie in `skillrun/_data/`, each file once, executable where it was."""
    prefix = "skillrun/_data/"
    with zipfile.ZipFile(wheel) as archive:
        inside = {
            entry.filename.removeprefix(prefix): bool((entry.external_attr >> 16) & stat.S_IXUSR)
            for entry in archive.infolist()
            if entry.filename.startswith(f"{prefix}{kind}/")
        }
    assert inside == shipped(kind)
    assert inside


def test_nothing_else_is_inside(wheel: Path) -> None:
    """Tests, docs and caches stay outside; the package and its metadata are all there is."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"skillrun", "skillrun_sandbox"}
    assert [name for name in names if "__pycache__" in name or name.endswith(".pyc")] == []
    modules = {str(path.relative_to(ROOT)) for path in (ROOT / "skillrun").rglob("*.py")}
    assert modules <= set(names)
    assert "skillrun/py.typed" in names


def test_the_name_is_ours(wheel: Path) -> None:
    """The distribution is `skillrun-sandbox`, its command `skillrun`, its license file inside."""
    with zipfile.ZipFile(wheel) as archive:
        info = next(name.split("/")[0] for name in archive.namelist() if ".dist-info/" in name)
        metadata = email.parser.Parser().parsestr(archive.read(f"{info}/METADATA").decode())
        commands = archive.read(f"{info}/entry_points.txt").decode()
        license_text = archive.read(f"{info}/licenses/LICENSE").decode()
    assert metadata["Name"] == "skillrun-sandbox"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert "skillrun = skillrun.cli:main" in commands
    assert license_text == (ROOT / "LICENSE").read_text()


@pytest.mark.parametrize("kind", KINDS)
def test_an_installed_wheel_finds_its_own_data(site: Path, kind: str, tmp_path: Path) -> None:
    """`resources.folder` answers with the folder inside the installed package, not with a checkout nearby."""
    program = "import sys; from skillrun import resources; print(resources.folder(sys.argv[1]))"
    done = python(site, program, kind, cwd=tmp_path)
    assert done.stderr == ""
    found = Path(done.stdout.strip())
    assert found == site.resolve() / "skillrun" / "_data" / kind
    # pip compiles every .py it installs, the example scripts too.
    files = {
        str(path.relative_to(found.parent))
        for path in found.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert files == set(shipped(kind))


def test_a_checkout_finds_its_own_data() -> None:
    """In an editable install the data is the checkout's, so that an edit counts at once."""
    assert [resources.folder(kind) for kind in KINDS] == [ROOT / kind for kind in KINDS]


@pytest.mark.skipif(sys.platform != "linux", reason="only the linux backend confines here")
def test_a_skill_runs_from_an_installed_wheel(site: Path, tmp_path: Path) -> None:
    """The command from the wheel runs an example skill from the wheel, confined, with no checkout in reach."""
    skill = site / "skillrun" / "_data" / "skills" / "hello"
    program = "import sys; from skillrun.cli import main; sys.exit(main())"
    arguments = ["run", "--ceiling", "default", "--workspace", str(tmp_path), str(skill), "--", "Ada"]
    done = python(site, program, *arguments, cwd=tmp_path)
    if done.returncode == 125 and "linux" not in os.environ.get("SKILLRUN_REQUIRE_BACKENDS", ""):
        pytest.skip(f"nothing was started: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Hello, Ada!\n")


def test_the_source_distribution_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    """Nothing that the wheel needs is missing from the source distribution."""
    archive = build(ROOT, tmp_path / "sdist", "sdist")
    with tarfile.open(archive) as source:
        source.extractall(
            tmp_path / "source", **({"filter": "tar"} if hasattr(tarfile, "tar_filter") else {})
        )
    (folder,) = (tmp_path / "source").iterdir()
    again = build(folder, tmp_path / "again", "wheel")
    with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(again) as other:
        # RECORD lists the others with their sizes and digests.
        assert {entry.filename: (entry.CRC, entry.external_attr) for entry in one.infolist()} == {
            entry.filename: (entry.CRC, entry.external_attr) for entry in other.infolist()
        }
