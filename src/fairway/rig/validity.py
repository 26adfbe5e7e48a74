"""Whether a run may be believed: a generator that fell behind its own plan measured itself.

Latency counts from the intended start in any case, so a late generator makes a system look worse,
never better; but a figure that is the generator's own is no figure of the system.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairway.rig.quantile import quantile

LAG_P99_MAX_SECONDS = 0.05
UNSENT_SHARE_MAX = 0.01


def complaints(lags_seconds: Sequence[float], intended: int) -> list[str]:
    """Why the run is invalid; nothing when it is valid. A lag is sent minus intended."""
    found = []
    unsent = intended - len(lags_seconds)
    if unsent > UNSENT_SHARE_MAX * intended:
        found.append(f"{unsent} of {intended} requests were never sent")
    lag = quantile(lags_seconds, 0.99)
    if lag > LAG_P99_MAX_SECONDS:
        found.append(
            f"the generator fell behind its plan: p99 of its lag is {lag * 1000:.0f} ms,"
            f" {LAG_P99_MAX_SECONDS * 1000:.0f} ms are allowed"
        )
    return found
