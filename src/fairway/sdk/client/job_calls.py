"""Jobs as calls to the server: one alone as a single submission, several as a batch.

Where callers gave keys, each job has one: the text of a job is the same in both, and so is its key,
so the server knows it again in either. Where none did, the call has one for all of its jobs, which
costs the store a row in place of one for each; then it is sent again as it was, or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

import msgspec

from fairway.core.errors import FairwayError
from fairway.sdk.client.ticket import Ticket, new_key
from fairway.sdk.http.transport import NOT_NOW, NotNow, Question
from fairway.wire.messages import BatchItem, BatchReply, JobAccepted, encode
from fairway.wire.problems import error_of, naming_its_field

JSON = {"Content-Type": "application/json"}
# 409 says that the first sending of this key is still on its way: its reply will come.
AGAIN_ON_SUBMIT = NOT_NOW | {409}
FINAL_ON_SUBMIT = frozenset({"NOT_UNIQUE"})  # another job is there, and will be for a while

#: Of one job of a call: its id, why it was refused, or that it may be sent again.
Answer: TypeAlias = "str | FairwayError | NotNow"

decode_accepted = msgspec.json.Decoder(JobAccepted).decode
decode_batch = msgspec.json.Decoder(BatchReply).decode


class Asked(Protocol):
    """Who brings one question to a server: `LeanHttp`, or `Transport` where a proxy is between."""

    async def attempt(self, question: Question, left_seconds: float) -> bytes: ...

    def close_idle(self) -> None: ...


class JobCalls:
    """The calls of one coalescer."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked

    async def send(
        self, tickets: Sequence[Ticket], key: str | None, left_seconds: float
    ) -> Sequence[Answer]:
        """One answer a job, in order; NotNow and FairwayError are of all. Without a `key` for all
        each has its own."""
        if len(tickets) == 1:
            return [await self._send_one(tickets[0], left_seconds)]
        headers = JSON if key is None else headers_of(key, None)
        body = batch_of(tickets, with_keys=key is None)
        question = submission("/v1/jobs/batch", body, headers)
        reply = decode_batch(await self._asked.attempt(question, left_seconds))
        return [item.id or _again_or_not(item) for item in reply.items]

    async def _send_one(self, ticket: Ticket, left_seconds: float) -> str:
        headers = headers_of(ticket.own_key(), ticket.traceparent)
        question = submission("/v1/jobs", ticket.body, headers)
        return decode_accepted(await self._asked.attempt(question, left_seconds)).id

    def close(self) -> None:
        self._asked.close_idle()


def headers_of(key: str, traceparent: str | None) -> dict[str, str]:
    headers = {**JSON, "Idempotency-Key": key}
    if traceparent is not None:
        headers["traceparent"] = traceparent
    return headers


def submission(path: str, body: bytes, headers: Mapping[str, str]) -> Question:
    """With keys: it can be asked again."""
    return Question("POST", path, body, headers, again_on=AGAIN_ON_SUBMIT, final_on=FINAL_ON_SUBMIT)


def shared_key(tickets: Sequence[Ticket]) -> str | None:
    """A key for all of them, if none has its own; None: each goes by its own."""
    is_shared = len(tickets) > 1 and not any(ticket.key for ticket in tickets)
    return new_key() if is_shared else None


def batch_of(tickets: Sequence[Ticket], *, with_keys: bool) -> bytes:
    jobs = b",".join([ticket.body for ticket in tickets])
    keys = (
        b',"idempotency_keys":' + encode([one.own_key() for one in tickets]) if with_keys else b""
    )
    return b'{"jobs":[%b]%b%b}' % (jobs, keys, traces_of([one.traceparent for one in tickets]))


def traces_of(traceparents: Sequence[str | None]) -> bytes:
    """What a batch says of them beside its jobs: nothing, when none has any."""
    if not any(traceparents):
        return b""
    return b',"traceparents":' + encode([one or "" for one in traceparents])


def refusal_of(item: BatchItem) -> FairwayError:
    return naming_its_field(error_of({"status": item.status, **(item.problem or {})}))


def _again_or_not(item: BatchItem) -> FairwayError | NotNow:
    error = refusal_of(item)
    is_final = item.status not in AGAIN_ON_SUBMIT or error.code in FINAL_ON_SUBMIT
    return error if is_final else NotNow(error)
