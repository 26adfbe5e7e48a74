"""Measurements of the engine on this machine, as ratios within one run.

Here: scenes, load, and the comparison with first come, first served.
Not here: experiments through the front door (`lab/`).
"""
