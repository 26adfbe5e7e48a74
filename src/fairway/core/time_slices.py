"""Long looks, cut into steps: whoever takes them lets others go on in between."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

LOOKED_AT_ONCE = 100  # streams: a few tenths of a millisecond


def in_steps(looks: Iterable[int]) -> Iterator[None]:
    """Goes through `looks`, each so many streams, and yields where a step is over.

    Not by tenants: one of them may have as many streams as ten thousand others.
    """
    looked_at = 0
    for count in looks:
        looked_at += count
        if looked_at >= LOOKED_AT_ONCE:
            looked_at = 0
            yield
