"""What tenants used and what it costs: periods, prices, statements, spend caps.

Here: sums of slot-time by period, amounts in whole millionths of the currency, what a cap leads to.
Not here: which runs are billed (`run/billing.py`); writing usage down (`store/billing`).
"""
