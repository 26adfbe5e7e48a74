"""A session belongs to the key that opened it, and a lease to whom it was given. Nobody is believed
who says otherwise, whatever has happened to the server meanwhile."""

from __future__ import annotations

import pytest
from tests.services.platform_room import (
    MEDIUM,
    Hand,
    Word,
    add_tenant,
    holding,
    kill,
    new,
    open_pair,
    owns_all,
    stored,
    submit,
    until,
)

from fairway.core.errors import Forbidden
from fairway.core.ids import Epoch
from fairway.core.lifecycle import State
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind
from fairway.core.tenant import Tenant
from fairway.services.platform import Platform
from fairway.services.sessions.sessions import Holding

MADE_UP = "1" * 32
FAILED = Outcome(OutcomeKind.FAILED, 5, failure=FailureClass.APP_ERROR, error=b"{}")


def another(hand: Hand, api_key: str, tenant: Tenant | None = None) -> Hand:
    """Somebody with a key of his own who has got hold of the session's name."""
    thief = Hand(hand.platform, medium=2)
    thief.key, thief.api_key = hand.key, api_key
    thief.tenant = None if tenant is None else tenant.id
    return thief


# -- sessions ------------------------------------------------------------------------------------


async def test_a_session_is_of_the_key_that_opened_it(platform: Platform, tenant: Tenant) -> None:
    """S9: a hello in another's name brought his leases and tokens; a goodbye lost them."""
    other = await add_tenant(platform, "other")
    await submit(platform, tenant, new(pool=MEDIUM))
    hand = Hand(platform, medium=2)
    hand.api_key = "ours"
    (lease,) = await hand.take()
    session = platform.dispatcher.sessions[hand.key]
    for thief in (another(hand, "theirs", other), another(hand, "theirs"), another(hand, "")):
        for word in ("hello", "goodbye", "draining", None):
            said = {word: True} if word else {}
            with pytest.raises(Forbidden) as told:
                await thief.say(running=[], reports=[thief.done(lease)], **said)
            assert told.value.code == "SESSION_OF_ANOTHER_KEY"
    assert (session.tenant, session.worker, session.draining) == (None, "hand", False)
    assert session.slots == {MEDIUM: 2}
    assert platform.dispatcher.leases[lease.job.id].session is session
    assert await hand.report(hand.done(lease)) == ({1}, set())


async def test_a_session_that_was_found_again_is_of_the_key_that_claims_it(
    database_url: str,
) -> None:
    first, second = await open_pair(database_url)
    tenant = await add_tenant(first)
    await submit(first, tenant, new(pool=MEDIUM))
    hand = Hand(first, medium=2)
    hand.api_key = "ours"
    (lease,) = await hand.take()
    await kill(first)
    await until(lambda: owns_all(second))
    hand.platform = second
    assert await hand.say(hello=True, running=[holding(lease)]) is not None
    with pytest.raises(Forbidden):
        await another(hand, "theirs").say(hello=True, running=[])
    assert await hand.report(hand.done(lease)) == ({1}, set())
    await second.stop()


# -- leases that nobody was given ------------------------------------------------------------------


@pytest.mark.parametrize("epoch", [1, 1 << 20])
@pytest.mark.parametrize("is_own", [True, False])
async def test_a_queued_job_is_not_finished_by_who_was_never_given_it(
    platform: Platform, tenant: Tenant, epoch: int, *, is_own: bool
) -> None:
    """S14: what a worker said that it held was believed if an earlier owner might have granted."""
    (job,) = await submit(platform, tenant, new("nobody.runs"))
    hand = Hand(platform, short=0)
    hand.tenant = tenant.id if is_own else None
    held = Holding(job, tenant.id, Epoch(epoch), MADE_UP)
    news = await hand.say(hello=True, running=[held])
    assert news is not None
    assert (news.revoked, news.revoked_epochs) == ([job], [epoch])
    for outcome in (None, FAILED):
        hand.number += 1
        word = Word(hand.number, job, tenant.name, Epoch(epoch), MADE_UP, outcome)
        for hello in (False, True):
            news = await hand.say(hello=hello, reports=[word])
            assert news is not None
            assert (news.recorded, news.refused) == ([], [word.number])
    assert await stored(platform, job) == (State.QUEUED, 0)
    assert job not in platform.dispatcher.leases


async def test_what_an_owner_granted_and_never_wrote_is_believed(database_url: str) -> None:
    """Of the same two jobs: one was given to a worker, the other nobody was given."""
    first, second = await open_pair(database_url)
    tenant = await add_tenant(first)
    await submit(first, tenant, new())
    (waiting,) = await submit(first, tenant, new("nobody.runs"))
    await first.loops["lease_writer"].stop()
    hand = Hand(first, short=1)
    (lease,) = await hand.take()
    assert not lease.written
    await kill(first)
    await until(lambda: bool(second.dispatcher.shards.terms))
    hand.platform = second
    forged = holding(lease)._replace(job=waiting)
    news = await hand.say(hello=True, running=[holding(lease), forged])
    assert news is not None
    assert news.revoked == [waiting]
    assert await hand.report(hand.done(lease)) == ({1}, set())
    assert (await stored(second, lease.job.id))[0] is State.SUCCEEDED
    assert (await stored(second, waiting))[0] is State.QUEUED
    await second.stop()


# -- what is said of jobs that have ended ----------------------------------------------------------


@pytest.mark.parametrize("outcome", [None, FAILED], ids=["succeeded", "failed"])
async def test_a_wrong_token_is_never_recorded_whoever_shows_it(
    platform: Platform, tenant: Tenant, outcome: Outcome | None
) -> None:
    """S19: job and epoch were enough; so another tenant's worker learnt how the job had ended."""
    other = await add_tenant(platform, "other")
    await submit(platform, tenant, new())
    hand = Hand(platform)
    (lease,) = await hand.take()
    word = hand.done(lease, outcome)
    assert await hand.report(word) == ({word.number}, set())
    for whose in (None, tenant.id, other.id):
        thief = Hand(platform, short=0)
        thief.tenant = whose
        await thief.say(hello=True)
        forged = thief.done(lease, outcome, token=MADE_UP)
        assert await thief.report(forged) == (set(), {forged.number})
        news = await thief.say(hello=True, reports=[forged])
        assert news is not None
        assert (news.recorded, news.refused) == ([], [forged.number])
    told = thief.done(lease, outcome)  # by the last of them, another tenant's, with the real token
    assert await thief.report(told) == (set(), {told.number})
    again = hand.done(lease, outcome)
    assert await hand.report(again) == ({again.number}, set()), "who was given it hears it again"


async def test_a_recorded_report_is_known_again_by_the_next_owner(database_url: str) -> None:
    """Its token stands nowhere: of a short job it never did."""
    first, second = await open_pair(database_url)
    tenant = await add_tenant(first)
    await submit(first, tenant, new())
    hand = Hand(first)
    (lease,) = await hand.take()
    word = hand.done(lease)
    assert await hand.report(word) == ({word.number}, set())
    await kill(first)
    await until(lambda: owns_all(second))
    hand.platform = second
    assert await hand.say(hello=True, running=[]) is not None
    forged = hand.done(lease, token=MADE_UP)
    assert await hand.report(word, forged) == ({word.number}, {forged.number})
    await second.stop()
