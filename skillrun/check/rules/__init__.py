"""The rules, one a file. A rule's module docstring is its page; `skillrun rule NAME` shows it."""
