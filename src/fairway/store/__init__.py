"""The memory: every SQL statement. Plain async functions, connection first, core values out."""
