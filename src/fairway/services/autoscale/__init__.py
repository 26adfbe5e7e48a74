"""Deciding how many workers each pool should have, and keeping workers that are spared from jobs.

Here: the loop of the server that decides, what operators say of pools, decisions on record.
Not here: the policy (`core/autoscale`); who starts and ends workers (`cli/processes`).
"""
