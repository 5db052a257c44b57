"""Entry point: `python -I -S <this folder> SOCKET_FD OWNER_PID SCRATCH_ROOT VERSION`."""

import os
import sys
from types import ModuleType

# Under -I neither the script's folder nor PYTHONPATH is searched for packages. The folder is made a
# package by hand, so that the modules can be imported relatively here and as `skillrun.confine` in tests.
if __package__ in {None, ""}:  # pragma: no branch - the other way is not a program
    room = ModuleType("confine")
    room.__path__ = [os.path.dirname(os.path.abspath(__file__))]
    sys.modules["confine"] = room
    from confine.warden import main  # type: ignore[import-not-found]

    os._exit(main(sys.argv[1:]))  # the owner waits for this end, and there is nothing to tidy up
