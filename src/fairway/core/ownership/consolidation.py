"""How many of the processes behind one address own shards: as few as the work needs.

What comes to one process at a time shares its statements, wake-ups and replies; spread over several
it shares less, and a job costs more. So shards go to one more process when those that own some have
little of a core left, and to one less when the others have time for its work. The others stand by:
they answer calls, pass on what an owner must judge, and take over when one ends. The time that they
use for that is not counted: more owners would not make it less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

SPREAD_PER_MILLE = 850  # of a core, each of those that own shards: then there is one more
UNKNOWN_PER_MILLE = 700  # what one counts as that has owned shards for a moment only
GATHER_PER_MILLE = 750  # of a core, what each of those would have that stay: then it is one less


def owners_needed(busy_per_mille: Sequence[int], processes: int, growth: float = 1.0) -> int:
    """Of so many processes, where these own shards now and use so much of a core each.

    `growth`: so many times their work is about to be theirs, as another ends.
    """
    owners, used = len(busy_per_mille), sum(busy_per_mille)
    coming = used * max(growth, 1.0)
    if coming > SPREAD_PER_MILLE * owners:
        owners = max(owners + 1, math.ceil(coming / SPREAD_PER_MILLE))
    elif used < GATHER_PER_MILLE * (owners - 1):
        owners -= 1
    return min(max(owners, 1), processes)
