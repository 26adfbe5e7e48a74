"""Edge: HTTP. It translates and decides nothing."""
