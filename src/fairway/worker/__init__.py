"""Edge: runs handlers. A keeper talks to the platform; runners hold the user's code."""
