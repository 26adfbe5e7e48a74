"""What people see of the platform, as values: counts, histograms, rates, shares, health.

Here: tallies of what jobs did, quantiles that can be merged, what several servers see joined.
Not here: metrics by name (`runtime/telemetry.py`); who looks and when (`services/insight`).
"""
