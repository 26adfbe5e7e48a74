"""Virtual time: slot-microseconds received, times SCALE, over a weight; one integer.

Every change of it is exact, so that what was charged equals what ran, to the microsecond. Its low
TENANT_BITS never change: they hold the tenant's number, which breaks ties and leads from a heap
entry back to the node.
"""

from __future__ import annotations

TENANT_BITS = 32
TENANT_MASK = (1 << TENANT_BITS) - 1
# Divisible by every power of ten up to WEIGHT_MAX and by 1..12 beside it: the weights people
# choose divide it, for others the stride is off by less than weight/SCALE (36 in a million).
SCALE = 2_772_000_000
