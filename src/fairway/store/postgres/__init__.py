"""The embedded PostgreSQL: its programs, data folder, process and settings.

Here: one life from the first start to the last stop, and the judgement of any server's settings.
Not here: SQL on our tables (above), the pool of connections (`connections/`).
"""
