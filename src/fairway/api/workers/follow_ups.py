"""What runs start, as their workers report it: each looked at as a submission is.

What is wrong with one of them fails its run: the handler is over, and all of them or none are made.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Raw

from fairway.api.jobs.submit import decode, look_at, new_job, refuse_unique
from fairway.api.payloads.body_cost import weigh
from fairway.api.payloads.payload_schema import PayloadSchemas
from fairway.api.workers.reports import Failure, ended_otherwise
from fairway.core.errors import FairwayError, InvalidRequest
from fairway.core.insight.trace_context import trace_of
from fairway.core.run.follow_up_ids import FOLLOW_UP_PAYLOAD_BYTES_MAX, FOLLOW_UPS_BYTES_MAX
from fairway.core.run.follow_ups import FollowUp, WantedFollowUps
from fairway.core.unique import NOT_IN_A_RUN
from fairway.runtime.loops import WorkInParts
from fairway.services.registry.job_types import Registry
from fairway.services.submit.follow_ups import refused
from fairway.wire import exchange as wire

PART_ITEMS = 32  # between two looks at the clock


class FollowUpReader:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._schemas = PayloadSchemas(registry.schemas)

    async def read(
        self, parents: Sequence[wire.Report]
    ) -> tuple[dict[int, WantedFollowUps], list[Failure]]:
        """What each wants, by the number of its report; and those of which something is wrong."""
        found, failures = {}, []
        for one in parents:
            assert one.follow_ups is not None
            try:
                jobs = await self._jobs(one.follow_ups.jobs)
                if (trace := trace_of(one.follow_ups.traceparent or "")) is not None:
                    jobs = [job._replace(trace=trace) for job in jobs]
                found[one.n] = WantedFollowUps(one.follow_ups.at_ms, jobs)
            except FairwayError as error:
                failures.append(ended_otherwise(one, refused(error, one.ran_us)))
        return found, failures

    async def _jobs(self, texts: Sequence[Raw]) -> list[FollowUp]:
        size = sum(map(len, texts))
        if size > FOLLOW_UPS_BYTES_MAX:
            raise InvalidRequest(
                f"They have {size} bytes together; a run starts jobs of {FOLLOW_UPS_BYTES_MAX}"
                " bytes at most.",
                code="PAYLOAD_TOO_LARGE",
            )
        work, jobs = WorkInParts(), []
        for place, text in enumerate(texts):
            jobs.append(self._job(place, text))
            if place % PART_ITEMS == PART_ITEMS - 1:
                await work.let_others()
        return jobs

    def _job(self, place: int, text: Raw) -> FollowUp:
        try:
            return self._understood(text)
        except InvalidRequest as error:
            field = f"/follow_ups/{place}{error.field}"
            raise InvalidRequest(error.message, code=error.code, field=field) from None

    def _understood(self, text: Raw) -> FollowUp:
        new = new_job(decode(text), FOLLOW_UP_PAYLOAD_BYTES_MAX, self._registry)
        if new.upload is not None:
            raise InvalidRequest("A follow-up brings its payload along.", field="/payload_upload")
        refuse_unique(new, NOT_IN_A_RUN)
        weigh(bytes(text))
        look_at(bytes(text))
        if self._registry.schemas:
            self._schemas.check(new.type, new.payload)
        return FollowUp(
            new.type,
            new.pool,
            new.priority,
            new.timeout_ms,
            new.payload,
            new.lane,
            new.wish,
            new.marks,
            new.limits,
        )
