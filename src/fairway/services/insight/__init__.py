"""The one read model behind dashboard, commands, API and metrics.

Here: counting what runs came to, this server's sight, all servers' together, history by the minute.
Not here: the survey that a sight is made from (`maintenance/gauges.py`); any rule (`core/insight`).
"""
