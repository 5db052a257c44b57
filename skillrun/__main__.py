"""`python -m skillrun`."""

import os
import sys

# Python puts the current folder first on its path for `-m`. Nothing may be imported from there (DESIGN 5,
# law 10): whatever was cloned or made last would run as skillrun, unconfined. Nor is it skillrun's own code,
# which no script may change: the workspace would be that.
if sys.path and sys.path[0] in {"", os.getcwd()}:  # noqa: PTH109 - compared with what Python wrote there
    del sys.path[0]

from skillrun.cli import main

if __name__ == "__main__":
    sys.exit(main())
