"""How many shards somebody asked for, beside how many a database has: what to tell them.

Their number is written when a database is founded, and a setting that says another one since then
does nothing. Reads no setting and no database.
"""

from __future__ import annotations

from typing import NamedTuple


class Unheeded(NamedTuple):
    """Why a wish does nothing, and what does."""

    what: str
    remedy: str


def unheeded(wanted: int | None, founded: int, there: int) -> Unheeded | None:
    """What to say of a database that was `founded` with so many shards and has so many now.

    Nothing where nobody said a number, or it is the one of then or of now: splitting shards is no
    reason to change a setting everywhere.
    """
    if wanted is None or wanted in (founded, there):
        return None
    what = (
        f"FAIRWAY_SHARD_COUNT is {wanted}, and this database has {there} shards: the setting"
        " counts when a database is founded, and is not heeded here."
    )
    if wanted > there:
        return Unheeded(
            what,
            f"`fairway shards split --to {wanted}` makes them more, while everything runs; or leave"
            " the setting out.",
        )
    return Unheeded(what, f"Shards never become fewer: leave it out, or set it to {there}.")
