"""The dispatcher: which job runs on which worker next, for the shards this server owns.

Here: fair share's loop, granting, filling windows, finding missed jobs.
Not here: how shards come and go (`ownership/`); talking to workers (`workers/`); writing leases and
outcomes (`recording/`).
"""
