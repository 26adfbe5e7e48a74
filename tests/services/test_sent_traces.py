"""Jobs that nobody's request brought begin traces, too: by a schedule, by a tenant's database."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from tests.services.platform_room import add_tenant, freeze, owner_on
from tests.services.scheduling.test_schedules import put, ticker_of, turn_back
from tests.services.submit.test_outbox import read, shop_of

from fairway.core.insight.span_bytes import SpanRecord
from fairway.core.insight.trace_context import is_sampled
from fairway.core.insight.trace_sampling import Sampling
from fairway.core.scheduling.ticks import CatchUp
from fairway.runtime.otlp_spans import JobSpans
from fairway.runtime.telemetry import Instruments
from fairway.services.platform import Platform
from fairway.services.scheduling.schedules import Schedules
from fairway.services.submit.outbox import Outbox


def traced(platform: Platform, add: Callable[[SpanRecord], None], ratio: float) -> Instruments:
    """All jobs are sampled, or none."""
    spans: Any = SimpleNamespace(spans=JobSpans(add, Sampling(ratio)))
    return Instruments(platform.clock, platform.metrics, spans)


async def stored_traces(platform: Platform) -> dict[str, bytes | None]:
    async with platform.database.background() as connection:
        rows = await connection.fetch("SELECT id::text, trace FROM jobs")
    return dict(map(tuple, rows))


async def test_jobs_of_schedules_and_transactions_begin_traces(database_url: str) -> None:
    for ratio, per_job in ((1.0, 1), (0.0, 0)):
        spans: list[SpanRecord] = []
        async with owner_on(database_url) as platform:
            await freeze(platform)
            tenant = await add_tenant(platform, f"t-{per_job}")
            before = await stored_traces(platform)
            instruments = traced(platform, spans.append, ratio)
            key = await put(platform, tenant, catch_up=CatchUp.LAST)
            schedules: Schedules = platform.schedules
            by_hand = Schedules(
                platform.database,
                platform.directory,
                platform.job_ids,
                platform.store_clock,
                schedules._limits,
                schedules._ports._replace(spans=instruments.spans),
                tenant_shards=platform.tenant_shards,
            )
            await by_hand.trigger(key)
            await turn_back(platform, key, 3)
            await ticker_of(platform, instruments=instruments).run_once(0)
            outbox = Outbox(
                platform.database,
                platform.directory,
                platform.dispatcher,
                platform.submissions,
                platform.admission,
                instruments,
            )
            async with shop_of(database_url, tenant) as enqueue:
                await enqueue(2)
            await outbox.run_once(read, 0)
            found = await stored_traces(platform)
        made = {job: trace for job, trace in found.items() if job not in before}
        assert len(made) == 4
        assert len(spans) == 4 * per_job
        told = {one.facts["messaging.message.id"]: one for one in spans}
        for job, trace in made.items():
            assert (trace is not None) == (job in told)
            if trace is not None:
                assert is_sampled(trace)
                assert told[job].trace == trace
                assert told[job].name == "send work"
