"""The dispatcher: which job runs on which worker next, for the shards this server owns.

Here: ownership of shards, fair share's loop, granting, filling windows, finding missed jobs.
Not here: talking to workers (`workers/`); writing leases and outcomes (`recording/`).
"""
