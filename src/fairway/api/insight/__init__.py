"""What people see of the platform over HTTP: the overview, live and over time, and shares.

Here: endpoints that show what `services/insight` has at hand, and messages made of it.
Not here: metrics for machines (`operators/health.py`); any count or rule (`core/insight`).
"""
