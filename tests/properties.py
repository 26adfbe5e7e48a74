"""How many examples a property is tried with: few in the suite, many in a soak.

The suite tries the same few every time, so that what fails is the change and not the draw; the
variable FAIRWAY_PROPERTY_EXAMPLES multiplies them and draws at random (`make properties`).
"""

from __future__ import annotations

import os
from typing import Any

from hypothesis import HealthCheck, settings

FACTOR = max(1, int(os.environ.get("FAIRWAY_PROPERTY_EXAMPLES", "1")))
USUAL = 50  # of a property that says nothing about it


def tried(examples: int = USUAL, **more: Any) -> settings:
    """No deadline: how long an example takes says more about the machine than about the code."""
    return settings(
        max_examples=examples * FACTOR,
        deadline=None,
        derandomize=FACTOR == 1,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        **more,
    )
