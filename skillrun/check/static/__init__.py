"""Static reading: what a script does, found in its text without running it. Never raises for what is in a file."""
