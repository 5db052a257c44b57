"""Seatbelt, macOS's sandbox: its language read and evaluated anywhere, profiles rendered, runs planned."""
