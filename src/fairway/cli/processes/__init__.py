"""Commands that start processes and stay until they are stopped.

Here: everything (`up`), a server, a worker, a database; and what these share.
Not here: commands that ask a running platform something (`cli`).
"""
