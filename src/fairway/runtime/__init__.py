"""What every program shares: settings, clock, telemetry, loops.

Here: what a program needs to start, to be seen and to end.
Not here: anything that knows what a job is.
"""
