"""Calls as they are held, encoded: one job of thousands is read, or goes on by itself.

A call is a `PassedJobs` of the API, which is written as a list. Where its parts stand is held
against that by test; what they mean is decided there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Raw

from fairway.core.ids import JobId
from fairway.services.submit.submission_group import NewJob

COUNT_AT, FIRST_AT, WHOLE_AT, JOBS_AT = 1, 4, 5, 6

_encode = msgspec.msgpack.Encoder().encode
_decode_parts = msgspec.msgpack.Decoder(list[Raw]).decode
_decode_job = msgspec.msgpack.Decoder(NewJob).decode


def jobs_at(call: bytes, places: Iterable[int]) -> list[NewJob]:
    """Some of its jobs; nothing of those beside them is decoded."""
    jobs = _decode_parts(_decode_parts(call)[JOBS_AT])
    return [_decode_job(jobs[place]) for place in places]


def apart(call: bytes, ids: Mapping[int, JobId]) -> list[bytes]:
    """For each of these places: the same call of that job alone, which has this id. One key for the
    whole is none for a part: whoever came second with it would be taken for the others."""
    parts = _decode_parts(call)
    jobs = _decode_parts(parts[JOBS_AT])
    parts[WHOLE_AT] = Raw(_encode(None))
    found = []
    for place, id_ in ids.items():
        parts[COUNT_AT], parts[FIRST_AT] = Raw(_encode(1)), Raw(_encode(id_))
        parts[JOBS_AT] = Raw(_encode([jobs[place]]))
        found.append(_encode(parts))
    return found
