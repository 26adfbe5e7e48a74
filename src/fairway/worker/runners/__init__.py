"""Runner processes as the keeper sees them: started, fed, watched, replaced.

Here: the fleet, isolated runs, spares, suspects, time limits, the watchdog.
Not here: what happens inside one (`runner.py`); what the kernel holds it to (`limits/`).
"""
