"""Edge: what a tenant's program imports. It knows the wire and the law, never the server."""
