"""Benchmarks of skillrun: ratios in one run, never absolute times."""
