"""How many workers a pool should have, and which of them may go: pure decisions.

Here: rules by pool, the facts they look at, the policy, how workers are divided among machines.
Not here: who looks and writes decisions down (`services/autoscale`); who starts processes (`cli`).
"""
