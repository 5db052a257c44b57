"""`python -m skillrun`."""

import sys

from skillrun.cli import main

if __name__ == "__main__":
    sys.exit(main())
