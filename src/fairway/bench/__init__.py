"""Measurements of the engine on this machine, as ratios within one run.

Here: one file for each `fairway bench` command, and first come, first served to compare with.
Not here: the platform that is measured and the load (`rig/`), experiments (`lab/`).
"""
