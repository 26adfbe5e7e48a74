"""A batch as it came, before any of its jobs is understood: texts, keys, traces, and fates.

It decides about no job: whether one is good is `submit_batch.py`'s question.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from fairway.api.http.decoding import UNDECODABLE, invalid
from fairway.api.http.headers import KEY_LENGTH_MAX, is_key
from fairway.core.errors import InvalidRequest
from fairway.core.insight.trace_context import trace_of
from fairway.wire import messages
from fairway.wire.exchange import NULL
from fairway.wire.messages import BATCH_MAX


class BatchHeaders(NamedTuple):
    """What headers say of every job of a batch."""

    key: str | None
    trace: bytes | None


class BatchItems(NamedTuple):
    texts: list[msgspec.Raw]
    keys: list[str] | None
    traces: list[bytes | None] | None


def items_of(body: bytes, of_all: BatchHeaders) -> BatchItems:
    """The jobs' texts; each one's own key, and the trace, if they have any."""
    try:
        batch = messages.decode_batch(body)
    except UNDECODABLE as error:
        raise invalid(error, body) from None
    texts = batch.jobs
    if not 1 <= len(texts) <= BATCH_MAX:
        raise InvalidRequest(
            f"A batch holds 1 to {BATCH_MAX} jobs; this one has {len(texts)}.", field="/jobs"
        )
    traces = _traces(batch.traceparents, len(texts), of_all.trace)
    if batch.idempotency_keys is not None:
        return BatchItems(texts, _own_keys(batch.idempotency_keys, len(texts), of_all.key), traces)
    return BatchItems(texts, None, traces)


def _traces(texts: list[str] | None, jobs: int, of_all: bytes | None) -> list[bytes | None] | None:
    """As with the header, what is not well formed is as good as none; too few are, too."""
    if texts is None:
        return None if of_all is None else [of_all] * jobs
    found = [trace_of(text) or of_all for text in texts[:jobs]]
    return found + [of_all] * (jobs - len(found))


def _own_keys(keys: list[str], jobs: int, batch_key: str | None) -> list[str]:
    if batch_key is not None:
        raise InvalidRequest(
            "Give an Idempotency-Key for the batch or idempotency_keys for its jobs, not both.",
            field="/idempotency_keys",
        )
    if len(keys) != jobs:
        raise InvalidRequest(
            f"There is a key for each job or none at all: these are {len(keys)} for {jobs} jobs.",
            field="/idempotency_keys",
        )
    for place, key in enumerate(keys):
        if not is_key(key):
            raise InvalidRequest(
                f"A key is 1 to {KEY_LENGTH_MAX} printable ASCII characters.",
                field=f"/idempotency_keys/{place}",
            )
    return keys


class _Fates(msgspec.Struct):
    """Of a job that was refused: what it would have had of its own."""

    payload: msgspec.Raw = NULL
    payload_upload: msgspec.Raw = NULL
    unique: msgspec.Raw = NULL
    limits: Any = None


_decode_fates = msgspec.json.Decoder(_Fates).decode


def may_fail_alone(text: msgspec.Raw, inline_max: int, *, in_parts: bool) -> bool:
    """Whether a job that was refused would have had a fate of its own, had it been good. Of a
    tenant in several shards one with limits has: it goes to the first, whatever the others do."""
    try:
        fates = _decode_fates(text)
    except msgspec.DecodeError:
        return False  # no object at all: it is refused whenever it comes
    if in_parts and fates.limits:
        return True
    own = (fates.payload_upload, fates.unique)
    return any(bytes(said) != b"null" for said in own) or len(bytes(fates.payload)) > inline_max
