"""Conversation: tool calls that wait for a person, for an answer, or for long work, and outlive the process."""
