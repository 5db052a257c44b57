"""The far side of the fork: does what a plan says, and knows nothing else.

Standard library only, and nothing of skillrun: it is started by path with `python -I -S`, so that
neither the environment nor site-packages can put code in front of it. Everything here runs with the
caller's rights until the last steps before an exec, so it is kept small enough to read in one sitting.
"""
