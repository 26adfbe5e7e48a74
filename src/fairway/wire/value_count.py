"""How many values a body may hold. Client and server count alike, so that nothing is sent in vain.

A codec does not let go of the interpreter while it decodes, and how long that takes goes with the
number of values: what begins one is counted, which is cheap.
"""

from __future__ import annotations

VALUES_MAX = 100_000  # of one job
BATCH_VALUES_MAX = 300_000  # of all jobs in a batch
ENVELOPE_VALUES = 14  # of one job around its payload: a value a field, at most
_BEGINS_VALUE = b",[{"


def values_at_most(text: bytes) -> int:
    """Values in a text, and perhaps more: what begins one may also stand in a string."""
    return len(text) - len(text.translate(None, _BEGINS_VALUE))


def has_room(payload: bytes) -> bool:
    """Whether a job can surely carry this payload with it, as far as values go."""
    most = VALUES_MAX - ENVELOPE_VALUES
    return len(payload) <= most or values_at_most(payload) <= most
