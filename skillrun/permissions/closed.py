"""Closed: what can't be told of a path, for want of a right, is not absent.

A script with the right to write in a folder may take the right to search it away from its owner, and give it back in its next
run. What looked absent meanwhile would be neither denied nor covered.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from skillrun.errors import ConfigError
from skillrun.problem import error

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class ClosedError(ConfigError):
    """What lies at a path can't be told, as a folder on the way can't be looked into.

    `ours` says that the folder is our user's: else no script can have closed it, and none can open it.
    """

    def __init__(
        self,
        folder: Path,
        *,
        ours: bool,
        lost: str = "what must be kept from the script may be in it",
    ) -> None:
        message = f"`{folder}` can't be looked into, and {lost}"
        super().__init__(error("path-closed", message, help=f"`chmod u+rx {folder}`"))
        self.folder, self.ours = folder, ours

    def __reduce__(self) -> tuple[type[ConfigError], tuple[object, ...]]:  # type: ignore[override] # as what callers know
        """Pickle as what a caller is told."""
        return ConfigError, self.problems


def may_be(path: str, lstat: Callable[[str], object] = os.lstat) -> bool:
    """Tell whether anything lies at a path, or may do so where that can't be told."""
    try:
        lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def is_ours(path: str, lstat: Callable[[str], os.stat_result] = os.lstat) -> bool:
    """Tell whether what lies at a path, or the folder that hides it, is our user's: a script may have closed it."""
    try:
        return lstat(path).st_uid == os.geteuid()
    except PermissionError:
        return path != "/" and is_ours(os.path.dirname(path), lstat)  # noqa: PTH120 - text throughout
    except OSError:
        return False
