"""Infer: what a script takes, found out from its source and never by running it."""
