"""The conversation's transport: where a call goes, how long it may take, what a refusal is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.worker.platform import Platform

from fairway.core.errors import (
    Conflict,
    FairwayError,
    Forbidden,
    InvalidRequest,
    NotFound,
    Unavailable,
)
from fairway.wire import exchange as wire
from fairway.worker.exchange import session as module
from fairway.worker.exchange.session import PAUSE_MAX_SECONDS, Session, SilentAddresses, is_refusal

NOBODY = "http://127.0.0.1:1"
REQUEST = wire.ExchangeRequest(session="0" * 32)


@pytest.fixture
async def platform() -> AsyncIterator[Platform]:
    async with Platform().open() as opened:
        yield opened


async def say(session: Session) -> wire.ExchangeReply:
    async with asyncio.timeout(30):
        return await session.exchange(REQUEST, [wire.encode(REQUEST)])


async def test_an_address_that_does_not_answer_is_left_for_the_next(platform: Platform) -> None:
    session = Session([NOBODY, platform.url], "key", "one", SilentAddresses())
    with pytest.raises(Unavailable, match="nobody listens there"):
        await say(session)
    for _ in range(2):  # and it stays where it was heard
        assert (await say(session)).beat_ms > 0
    session.close()


async def test_an_address_that_was_silent_a_moment_ago_is_asked_when_nobody_else_is_left(
    platform: Platform,
) -> None:
    """A process died, and the kernel still takes calls for it, which take seconds each."""
    silent = SilentAddresses()
    silent.missed(NOBODY)
    platform.judge = lambda request: 500
    session = Session([platform.url, NOBODY], "key", "one", silent)
    for _ in range(4):
        with pytest.raises(FairwayError):
            await say(session)
    assert len(platform.calls) == 4, "who passes calls on does not know the next owner yet"
    silent.missed(platform.url)
    with pytest.raises(FairwayError):
        await say(session)
    with pytest.raises(Unavailable, match="connection refused"):
        await say(session)
    session.close()


async def test_an_owner_that_answers_again_is_spoken_with_itself(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever passes calls on costs each of them twice; only the owner's word brings us back."""
    monkeypatch.setattr(module, "LOOK_FIRST_SECONDS", 0.0)
    async with Platform().open() as passer:
        platform.judge = lambda request: 500
        session = Session(
            [platform.url, passer.url], "key", "one", SilentAddresses(), owner=platform.url
        )
        with pytest.raises(FairwayError):
            await say(session)
        platform.judge = lambda request: 200
        for _ in range(3):  # it does not say that it lives
            await say(session)
            await asyncio.sleep(0.02)
        assert len(platform.calls) == 1
        platform.errand = lambda path: (200 if path == "/livez" else 404, b"{}")
        async with asyncio.timeout(10):
            while len(platform.calls) == 1:
                await say(session)
                await asyncio.sleep(0.02)
        passed_on = len(passer.calls)
        await say(session)
        assert len(passer.calls) == passed_on
    session.close()


@pytest.mark.parametrize(
    ("status", "leaves"), [(422, False), (413, False), (503, False), (500, True)]
)
async def test_a_refusal_is_no_reason_to_go_elsewhere(
    platform: Platform, status: int, *, leaves: bool
) -> None:
    """503 is `NO_ROOM` here: a smaller call is heard by the same server."""
    platform.judge = lambda request: status
    session = Session([platform.url, NOBODY], "key", "one", SilentAddresses())
    with pytest.raises(FairwayError):
        await say(session)
    platform.judge = lambda request: 200
    if leaves:
        with pytest.raises(Unavailable, match="connection refused"):
            await say(session)
    else:
        assert await say(session)
    session.close()


async def test_a_reply_that_does_not_come_in_time_is_unavailable(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time a call may take is what it asks to be held for, and a grace on top."""
    monkeypatch.setattr(module, "GRACE_SECONDS", 0.0)
    monkeypatch.setattr(module, "BYTES_PER_SECOND", 1e12)
    session = Session([platform.url], "key", "one", SilentAddresses())
    with pytest.raises(Unavailable, match="no reply in time"):
        await say(session)
    with pytest.raises(Unavailable, match="no reply in time"):
        await session.call("GET", "/payloads/1", b"", limit_seconds=0.0)
    session.close()


async def test_any_other_call_answers_its_body_or_raises(platform: Platform) -> None:
    said = []

    def errand(path: str) -> tuple[int, bytes]:
        said.append(path)
        return (200, b"state") if path.endswith("good") else (404, b"<html>lost</html>")

    platform.errand = errand
    session = Session([platform.url], "key", "one", SilentAddresses())
    assert await session.call("GET", "/good", b"", 10) == b"state"
    with pytest.raises(FairwayError):
        await session.call("GET", "/bad", b"", 10)
    assert said == ["/v1/workers/one/good", "/v1/workers/one/bad"]
    session.close()


async def test_pauses_grow_are_bounded_and_begin_anew_after_a_reply(platform: Platform) -> None:
    session = Session([platform.url], "key", "one", SilentAddresses())
    pauses = [session.next_pause_seconds() for _ in range(2000)]
    assert max(pauses) <= PAUSE_MAX_SECONDS
    assert min(pauses) >= module.PAUSE_FIRST_SECONDS
    assert pauses[0] <= 2 * module.PAUSE_FIRST_SECONDS < min(pauses[-100:])
    await say(session)
    assert session.next_pause_seconds() <= 2 * module.PAUSE_FIRST_SECONDS
    session.close()


@pytest.mark.parametrize(
    ("error", "refuses"),
    [
        (InvalidRequest("no good"), True),
        (NotFound("no such pool"), True),
        (NotFound("a page", code="INTERNAL"), False),
        (NotFound("a page", code="NOBODY_KNOWS"), False),
        (Conflict("another"), True),
        (InvalidRequest("full", code="TOO_MANY_JOB_TYPES"), False),
        (Forbidden("no key"), False),
        (Unavailable("later"), False),
    ],
)
def test_only_what_will_never_be_taken_is_a_refusal(error: FairwayError, *, refuses: bool) -> None:
    assert is_refusal(error) is refuses
