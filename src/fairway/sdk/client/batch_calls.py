"""Many jobs of one call: slices of what a request should carry, a few of them on their way at once.

While the store writes one slice the server reads the next: a slice alone would have each wait for
the other. Every slice has keys, so it can be sent again after a lost reply. Answers stand in the
order of the jobs. In which order slices are accepted is not said, but for unique jobs: of those
with one key the first or the last call counts, so their slices go one after the other.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from fairway.core.errors import FairwayError
from fairway.sdk.client import job_calls
from fairway.sdk.client.backend import Submission
from fairway.sdk.client.job_calls import JSON, decode_batch, refusal_of, traces_of
from fairway.sdk.http.transport import Transport
from fairway.wire.messages import encode
from fairway.wire.value_count import BATCH_VALUES_MAX, ENVELOPE_VALUES, values_at_most

AT_ONCE = 3
SLICE_JOBS = 500  # fill a request well: a call with no more is one
SLICE_JOBS_MAX = 2_500  # more at once would have others wait for the server, and for nothing
_HALVED_ON = frozenset({"PAYLOAD_TOO_LARGE", "TOO_MANY_VALUES"})

Answer: TypeAlias = "str | FairwayError"  # of one job: its id, or why it was refused
Answers: TypeAlias = Sequence[Answer]
Send: TypeAlias = Callable[[list[Submission]], Awaitable[Answers]]


class BatchCalls:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def submit(self, submissions: list[Submission]) -> list[Answer]:
        """One answer a job. A slice that fails keeps back those that have not set out; when
        nothing was accepted, its error is raised."""
        is_unique = any(one.request.unique is not None for one in submissions)
        return await self._parts(list(in_slices(submissions)), 1 if is_unique else AT_ONCE)

    async def _parts(self, slices: list[list[Submission]], at_once: int) -> list[Answer]:
        answers = await sent(slices, self._part, at_once)
        failed = [one for one in answers if isinstance(one, Failed)]
        if failed and len(failed) == len(answers):
            raise failed[0].error
        return [one for part in answers for one in part]

    async def _part(self, part: list[Submission]) -> list[Answer]:
        try:
            return await self._batch(part)
        except FairwayError as error:
            if error.code not in _HALVED_ON or len(part) == 1:
                raise
        half = len(part) // 2
        return await self._parts([part[:half], part[half:]], 1)

    async def _batch(self, part: list[Submission]) -> list[Answer]:
        body = b'{"jobs":' + encode([one.request for one in part])
        headers = dict(JSON)
        if any(one.idempotency_key for one in part):
            keys = [one.idempotency_key or os.urandom(16).hex() for one in part]
            body += b',"idempotency_keys":' + encode(keys)
        else:
            headers["Idempotency-Key"] = os.urandom(16).hex()
        body += traces_of([one.traceparent for one in part]) + b"}"
        question = job_calls.submission("/v1/jobs/batch", body, headers)
        reply = decode_batch(await self._transport.ask(question))
        return [item.id or refusal_of(item) for item in reply.items]


class Failed(list[FairwayError]):
    """The answers of a slice that was not accepted, or not sent: the same error for each job."""

    def __init__(self, error: FairwayError, jobs: int) -> None:
        super().__init__([error] * jobs)
        self.error = error


async def sent(slices: list[list[Submission]], send: Send, at_once: int) -> list[Answers]:
    """The answers of each slice, in their order; so many are on their way at a time."""
    answers: dict[int, Answers] = {}
    turns, failures = iter(enumerate(slices)), list[FairwayError]()

    async def in_turn() -> None:
        for place, part in turns:  # all of them take from one line
            try:
                answers[place] = await send(part)
            except FairwayError as error:
                failures.append(error)
                answers[place] = Failed(error, len(part))
            if failures:
                return

    await _together([in_turn] * min(at_once, len(slices)))
    return [
        answers[n] if n in answers else Failed(failures[0], len(part))
        for n, part in enumerate(slices)
    ]


async def _together(works: Sequence[Callable[[], Awaitable[None]]]) -> None:
    """All of them; what goes wrong with one, and is no refusal, ends the others first."""
    if len(works) <= 1:
        for work in works:
            await work()
        return
    tasks = [asyncio.ensure_future(work()) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def in_slices(submissions: Sequence[Submission]) -> Iterator[list[Submission]]:
    """Each as much as one call should carry, in jobs, and may carry, in values."""
    most = min(max(SLICE_JOBS, len(submissions) // AT_ONCE), SLICE_JOBS_MAX)
    part: list[Submission] = []
    values = 0
    for one, more in zip(submissions, _values(submissions), strict=True):
        if part and (len(part) >= most or values + more > BATCH_VALUES_MAX):
            yield part
            part, values = [], 0
        part.append(one)
        values += more
    if part:
        yield part


def _values(submissions: Iterable[Submission]) -> Iterator[int]:
    for one in submissions:
        payload = bytes(one.request.payload)
        # As many values as bytes at most: a short text need not be counted.
        yield (values_at_most(payload) if len(payload) > 64 else len(payload)) + ENVELOPE_VALUES
