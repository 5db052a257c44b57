"""The launcher client: capture, deadline, tree kill, Result."""
