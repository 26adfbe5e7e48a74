"""The database of a platform: made ready, judged, brought up to date, copied and restored.

Here: commands that speak to PostgreSQL itself, before or beside a server.
Not here: PostgreSQL that is started and kept running (`cli/processes`).
"""
