"""Models: what drives a conversation. No SDK is imported: the caller makes the client, or names a command."""
