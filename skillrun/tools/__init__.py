"""Tools: scripts and functions that a model can call."""
