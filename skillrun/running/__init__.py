"""What a runner knows and keeps: where things are, what is guarded, and how many runs there may be at once."""
