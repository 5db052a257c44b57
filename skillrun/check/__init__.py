"""Check: what is wrong with skills and with profiles, one rule a file."""
