"""Statements on usage and money: hours of slot-time, prices, months that are closed, spend caps.

Here: one module for each file of statements, as beside this package.
Not here: the ends of runs that usage comes from (`outcomes.py`); any price (`core/billing`).
"""
