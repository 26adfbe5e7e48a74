"""Usage and what it costs: hours rolled up, months closed, statements, prices, spend caps.

Here: the loops that keep the books, and what tenants and operators ask of them.
Not here: what a run is billed (`core/run`); what anything costs (`core/billing`).
"""
