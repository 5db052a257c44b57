"""Tools: scripts and functions that a model can call."""

import logging

# A library says nothing by itself: without a handler, Python would write warnings to standard error.
logging.getLogger("skillrun").addHandler(logging.NullHandler())
