"""What a worker hears to its offer: how many of its slots count as used, and where more would help.

It shares its slots out between owners by that (`worker/exchange/slot_sharing.py`).
"""

from __future__ import annotations

from typing import NamedTuple

from fairway.core.ids import PoolId
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.sessions.sessions import Session


class OfferAnswer(NamedTuple):
    in_use: dict[PoolId, int]
    waiting: dict[PoolId, int]  # pool → weight of the tenants that wait for a slot of it


def answer_to_offer(dispatcher: Dispatcher, key: str) -> OfferAnswer | None:
    """None: the session is not here any more."""
    session = dispatcher.session_of(key)
    if session is None:
        return None
    in_use = {pool: used for pool, used in session.in_use.items() if used}
    if session.draining or session.is_closed:
        return OfferAnswer(in_use, {})
    full = [pool for pool in session.slots if not session.has_slot(pool)]
    weights = {pool: _waiting(dispatcher, session, pool) for pool in full}
    return OfferAnswer(in_use, {pool: weight for pool, weight in weights.items() if weight})


def await_work(dispatcher: Dispatcher, session: Session) -> None:
    """A call is held of a worker with several owners: where it offers nothing here just now, it
    hears of the first work. Of work that waits already it knows."""
    offers = dispatcher.offers()
    if session.key not in offers:
        return
    for pool, slots in offers.slots_of(session).items():
        if slots > 0 and not session.slots.get(pool) and not _waiting(dispatcher, session, pool):
            offers.await_work(session, pool)


def _waiting(dispatcher: Dispatcher, session: Session, pool: PoolId) -> int:
    standings = dispatcher.share_of(pool)
    if session.tenant is not None:
        return int(standings.is_waiting(session.tenant))
    return standings.waiting_weight
