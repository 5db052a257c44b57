"""One renderer a format; pure."""
