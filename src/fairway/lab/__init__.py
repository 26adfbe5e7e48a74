"""The load lab: experiments on a platform of its own, through the front door only.

Here: experiments and scenarios, what they compute, their reports.
Not here: the platform that is measured and the load (`rig/`); nobody imports the lab.
"""
