"""Usage and money: what was used, what a month came to, prices, spend caps.

Here: endpoints for the tenant's own key, and for operators by the tenant's name.
Not here: one job's slot-time (`jobs/`); any sum or price (`core/billing`).
"""
