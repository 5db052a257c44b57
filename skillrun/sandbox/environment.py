"""The environment of a script: an allow list, because a block list of secrets is never complete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun import resources

if TYPE_CHECKING:
    from pathlib import Path

    from skillrun.permissions.grant import Grant
    from skillrun.permissions.place import Place
    from skillrun.skills.model import Interpreter

# Beside the scratch folders: links that make both `python` and `python3` found; and in a scratch folder.
BIN, OUTPUT = "bin", "output"


def environment(
    grant: Grant, place: Place, interpreter: Interpreter | None, *, programs: Path
) -> tuple[tuple[str, str], ...]:
    """Give the variables of a run, sorted by name (DESIGN 9)."""
    caller = place.environ
    scratch = str(place.scratch)
    folders = [str(interpreter.path.parent)] if interpreter is not None else []
    folders += resources.table("linux/system")["path"]
    folders.append(str(programs))  # last: the system's own names win
    user = caller.get("USER") or caller.get("LOGNAME") or "user"
    values = {
        "HOME": scratch,
        "LANG": caller.get("LANG", "C.UTF-8"),
        "LOGNAME": user,
        "PATH": ":".join(dict.fromkeys(folders)),
        "TMPDIR": scratch,
        "USER": user,
        "XDG_CACHE_HOME": f"{scratch}/.cache",
        "GIT_CONFIG_NOSYSTEM": "1",  # EACCES on /etc/gitconfig is fatal to git, ENOENT is not
        "PYTHONDONTWRITEBYTECODE": "1",  # the skill folder is not writable
        # A skill may ship bytecode in `__pycache__`, which its digest leaves out: let Python not look there.
        "PYTHONPYCACHEPREFIX": f"{scratch}/.cache/pycache",
        "PYTHONUTF8": "1",
        "SKILLRUN_OUTPUT_DIR": f"{scratch}/{OUTPUT}",
        "SKILLRUN_SKILL": str(place.skill),
        "SKILL_DIR": str(place.skill),
        "WORKSPACE": str(place.workspace),
    }
    granted = grant.capabilities.env
    for name, value in caller.items():
        if name in granted or name == "TZ" or name[:3] == "LC_":
            values.setdefault(name, value)
    return tuple(sorted(values.items()))
