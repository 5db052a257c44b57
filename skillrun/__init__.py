"""skillrun: the least-privilege runner for agent-skill scripts."""

__version__ = "0.1.0"
