"""The contract: every message that crosses a process line, and how errors look on it."""
