"""The load lab: experiments on a platform of its own, through the front door only.

Here: the house that is started, the generator of load, scenarios.
Not here: anything that the platform needs: nobody imports the lab.
"""
