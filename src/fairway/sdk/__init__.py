"""Edge: what a tenant's program imports. It knows `wire` and `core`, never the server.

Here: apps and jobs, the client, the context of a handler, tests without a server.
Not here: processes and limits (`worker/`). `fairway` itself exports what is public.
"""
