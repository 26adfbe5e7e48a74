"""Large results: which they are, and the text of what carries them without a copy of them.

A fresh copy of twelve megabytes costs a loop as long as hundreds of small jobs; so a large result
goes from its run to the pipe, to the journal and to the platform as it is, with the rest of the
text around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from fairway.wire import exchange as wire
from fairway.wire.exchange import NULL, ExchangeRequest, Report
from fairway.worker.pipe.pipe import Checkpoint, Progress, RunnerMessage, RunReport
from fairway.worker.pipe.pipe import Parts as Parts  # what the texts here are

LIGHT_BYTES = 256 << 10  # what may travel with a heartbeat
REPORT_BYTES = 300  # of one report besides its result and its error
FRAME_BYTES = 32 << 20  # what goes into one frame of words; a single large one may be longer


def is_heavy(one: Report) -> bool:
    return len(one.result) > LIGHT_BYTES


def weight_of(report: Report) -> int:
    return len(report.result) + len(report.error) + REPORT_BYTES + follow_up_bytes(report)


def follow_up_bytes(report: Report) -> int:
    """Of the jobs that it starts."""
    return 0 if report.follow_ups is None else sum(map(len, report.follow_ups.jobs))


def text_of(one: Report) -> Parts:
    if not is_heavy(one):
        return [msgspec.json.encode(one)]
    rest = msgspec.json.encode(msgspec.structs.replace(one, result=NULL))
    return [rest[:-1], b',"result":', memoryview(one.result), b"}"]


def request_text(request: ExchangeRequest) -> Parts:
    if not any(map(is_heavy, request.reports)):
        return [wire.encode(request)]
    rest = wire.encode(msgspec.structs.replace(request, reports=[]))
    return _with_list(b"reports", request.reports, rest)


def words_text(words: RunnerMessage) -> Parts:
    if not any(map(is_heavy, words.ended)):
        return [msgspec.json.encode(words)]
    rest = msgspec.json.encode(msgspec.structs.replace(words, ended=[]))
    return _with_list(b"ended", words.ended, rest)


def in_frames(
    ended: list[RunReport], progress: list[Progress], checkpoints: list[Checkpoint]
) -> Iterator[RunnerMessage]:
    """All of it in one frame, as most often; in several where that would grow too long."""
    size = sum([len(one.result) for one in ended]) + sum([len(one.state) for one in checkpoints])
    size += sum([follow_up_bytes(one) for one in ended if one.follow_ups is not None])
    if size <= FRAME_BYTES:
        yield RunnerMessage(ended=ended, progress=progress, checkpoints=checkpoints)
        return
    yield RunnerMessage(progress=progress)  # before the ends of their runs
    for wanted in checkpoints:
        yield RunnerMessage(checkpoints=[wanted])
    some: list[RunReport] = []
    size = 0
    for one in ended:
        size += weight_of(one)
        if some and size > FRAME_BYTES:
            yield RunnerMessage(ended=some)
            some, size = [], weight_of(one)
        some.append(one)
    yield RunnerMessage(ended=some)


def _with_list(name: bytes, items: Sequence[Report], rest: bytes) -> Parts:
    """The object whose other fields are `rest`, with these in a list."""
    listed = [part for one in items for part in (b",", *text_of(one))]
    return [b'{"%s":[' % name, *listed[1:], b"]," if len(rest) > 2 else b"]", rest[1:]]


def size_of(parts: Parts) -> int:
    return sum(map(len, parts))
