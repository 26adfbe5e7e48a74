"""Whose words decide what becomes of a failed run."""

from __future__ import annotations

import pytest
from tests.services.platform_room import Hand, add_tenant, stored, submit

from fairway.core.ids import TenantId, TypeId
from fairway.core.lifecycle import State
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind
from fairway.core.tenant import Tenant
from fairway.services.failure import retry_policies
from fairway.services.failure.retry_policies import Policies
from fairway.services.platform import Platform

ONCE = {"attempts_max": 1}
OFTEN = {"attempts_max": 9}
MAIL, SCORE = TypeId(1), TypeId(2)
ACME, ENEMY = TenantId(10), TenantId(666)


def test_a_tenants_own_worker_speaks_for_its_tenant_only() -> None:
    known = Policies()
    known.asked(None, {MAIL: OFTEN})
    known.asked(ENEMY, {MAIL: ONCE, SCORE: ONCE})
    assert known.of(ACME, MAIL) == OFTEN
    assert known.of(ACME, SCORE) == {}
    assert known.of(ENEMY, MAIL) == ONCE


def test_the_last_word_holds_and_silence_takes_nothing_back() -> None:
    known = Policies()
    known.asked(ACME, {MAIL: ONCE})
    known.asked(ACME, {SCORE: OFTEN})
    known.asked(ACME, {})
    assert (known.of(ACME, MAIL), known.of(ACME, SCORE)) == (ONCE, OFTEN)
    known.asked(ACME, {MAIL: OFTEN})
    assert known.of(ACME, MAIL) == OFTEN


def test_what_tenants_say_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry_policies, "OWN_MAX", 5)
    known = Policies()
    known.asked(ACME, {MAIL: ONCE, SCORE: ONCE})
    known.asked(ENEMY, dict.fromkeys(map(TypeId, range(3)), ONCE))
    known.asked(ACME, {MAIL: ONCE})  # still here, and heard of last
    known.asked(TenantId(3), {MAIL: ONCE})
    assert known.of(ENEMY, TypeId(0)) == {}
    assert known.of(ACME, SCORE) == known.of(TenantId(3), MAIL) == ONCE


async def test_a_hello_of_one_tenants_worker_changes_nothing_for_another(
    platform: Platform, tenant: Tenant
) -> None:
    """It said "one attempt" of everybody's type, had no slot at all, and was believed."""
    enemy = Hand(platform, short=0)
    enemy.tenant, enemy.retry_bounds = (await add_tenant(platform, "enemy")).id, {"attempts_max": 1}
    await enemy.say(hello=True)
    (job,) = await submit(platform, tenant)
    shared = Hand(platform)
    (lease,) = await shared.take()
    failed = Outcome(
        OutcomeKind.FAILED, 5, None, FailureClass.APP_ERROR, b'{"message":"x"}', 10_000
    )
    await shared.report(shared.done(lease, failed))
    assert (await stored(platform, job))[0] is State.SCHEDULED
