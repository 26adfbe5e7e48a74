"""A clean stop hands over, whatever it could not write: nobody waits for its term to run out."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.postgres import connected
from tests.services.platform_room import (
    QUICK,
    Hand,
    add_tenant,
    holding,
    owner_on,
    sight,
    submit,
)

from fairway.core.lifecycle import State
from fairway.runtime.settings import Settings, replaced
from fairway.services import shutdown

INLINE = 1_000
LARGE = b'"' + b"x" * 1_998 + b'"'


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A term that no test would live to see the end of."""
    monkeypatch.setattr(shutdown, "WRITE_SECONDS_MAX", 0.5)
    return replaced(QUICK, term_seconds=60.0, data_dir=tmp_path, inline_bytes_max=INLINE)


async def test_object_storage_is_away(database_url: str, settings: Settings) -> None:
    results = settings.data_dir / "objects" / "results"
    results.parent.mkdir()
    results.write_text("a file where a folder must be")
    async with owner_on(database_url, settings) as first:
        tenant = await add_tenant(first)
        (job,) = await submit(first, tenant)
        hand = Hand(first)
        (lease,) = await hand.take()
        word = hand.done(lease, result=LARGE)
        await hand.say(reports=[word])
        assert first.recorder.large_results.bytes_held == len(LARGE)
    results.unlink()
    async with owner_on(database_url, settings) as second:
        hand.platform = second
        await hand.say(hello=True, running=[holding(lease)])
        assert await hand.report(word) == ({word.n}, set()), "nothing was lost"
        assert (await sight(second, tenant, job)).record.state == State.SUCCEEDED


async def test_somebody_holds_a_row(database_url: str, settings: Settings) -> None:
    async with connected(database_url) as slow, slow.transaction():
        async with owner_on(database_url, settings) as first:
            tenant = await add_tenant(first)
            (job,) = await submit(first, tenant)
            hand = Hand(first)
            (lease,) = await hand.take()
            await slow.fetch("SELECT FROM jobs WHERE id = $1 FOR UPDATE", job)
            await hand.say(reports=[hand.done(lease)])
        async with owner_on(database_url, settings):
            pass
