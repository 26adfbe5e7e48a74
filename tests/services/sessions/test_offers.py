"""Who hears of work at an owner that it offers no slot to."""

from __future__ import annotations

from fairway.core.ids import PoolId, TenantId
from fairway.services.sessions.offers import Offer, Offers
from fairway.services.sessions.sessions import Session

POOL, ONE, OTHER = PoolId(1), TenantId(1), TenantId(2)


def waiting(offers: Offers, key: str, tenant: TenantId | None) -> Session:
    session = Session(key, 0)
    session.claim(key, tenant, "")
    offers.hear(session, 1, Offer({POOL: 0}), {POOL: 4})
    offers.await_work(session, POOL)
    return session


def test_a_tenants_own_worker_does_not_hear_of_others_jobs() -> None:
    """It would ask in vain, and again with every job of theirs."""
    offers = Offers()
    for key, tenant in (("own", ONE), ("others", OTHER), ("shared", None)):
        waiting(offers, key, tenant)
    assert set(offers.take_unoffered(POOL, [OTHER])) == {"others", "shared"}
    assert set(offers.take_unoffered(POOL, [OTHER, ONE])) == {"own"}
    assert not offers.unoffered


def test_nothing_is_kept_of_who_has_gone() -> None:
    offers = Offers()
    waiting(offers, "own", ONE)
    offers.forget("own")
    assert not offers.unoffered
    assert "own" not in offers
