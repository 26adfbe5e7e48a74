"""What is wrong with how another region was set up, in words that follow its name."""

from __future__ import annotations

from collections.abc import Sequence

REFUSES = "runs, and refuses our FAIRWAY_REGION_SECRET"
OTHER = "is answered by the region {}: its address in FAIRWAY_REGIONS is another's"


def is_another_list(ours: Sequence[str], theirs: Sequence[str]) -> bool:
    """Not the beginning of one: places in it are in the ids of jobs."""
    return any(one != other for one, other in zip(ours, theirs, strict=False))


def unlike_lists(ours: Sequence[str], theirs: Sequence[str]) -> str:
    """How a region's list differs from ours; empty: not at all, or it did not say."""
    if not theirs:
        return ""
    if is_another_list(ours, theirs):
        return f"was told other regions, or in another order: {list(theirs)}"
    if here := ours[len(theirs) :]:
        return f"does not name {', '.join(here)} yet: set FAIRWAY_REGIONS there, too"
    if there := theirs[len(ours) :]:
        return (
            f"names {', '.join(there)}, which this region does not: set FAIRWAY_REGIONS here, too"
        )
    return ""
