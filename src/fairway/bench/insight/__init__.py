"""What it costs to see: open dashboards, and what is sent by OTLP.

Here: the two measurements, and processor time by program.
Not here: the load itself (`engine.py`).
"""
