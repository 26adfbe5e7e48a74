"""The garbage collector, told what a job platform looks like.

Hot paths make hundreds of thousands of small objects a second and no cycles; looking for cycles
among them every few hundred objects costs a tenth of the time. What lives since the start is set
aside, and the collector looks less often; memory is bounded by the windows, not by it.
"""

from __future__ import annotations

import gc

YOUNG_OBJECTS = 50_000
YOUNG_ROUNDS = 20
OLD_ROUNDS = 50


def calm_collector() -> None:
    """Call once, when a program has loaded what it needs and before it serves."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, YOUNG_ROUNDS, OLD_ROUNDS)
