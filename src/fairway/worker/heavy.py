"""Reports with large results: which they are, and their text without a copy of them.

A fresh copy of twelve megabytes costs the loop as long as hundreds of small jobs; so a large result
goes from the pipe to the journal and to the platform as it came, with the rest of the text around
it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from fairway.wire import exchange as wire
from fairway.wire.exchange import NULL, ExchangeRequest, Report

LIGHT_BYTES = 256 << 10  # what may travel with a heartbeat
REPORT_BYTES = 300  # of one report besides its result and its error

Parts: TypeAlias = list[bytes | memoryview]


def is_heavy(report: Report) -> bool:
    return len(report.result) > LIGHT_BYTES


def weight_of(report: Report) -> int:
    return len(report.result) + len(report.error) + REPORT_BYTES


def report_text(report: Report) -> Parts:
    if not is_heavy(report):
        return [msgspec.json.encode(report)]
    rest = msgspec.json.encode(msgspec.structs.replace(report, result=NULL))
    return [rest[:-1], b',"result":', memoryview(report.result), b"}"]


def request_text(request: ExchangeRequest) -> Parts:
    if not any(map(is_heavy, request.reports)):
        return [wire.encode(request)]
    rest = wire.encode(msgspec.structs.replace(request, reports=[]))
    return [b'{"reports":[', *_joined(map(report_text, request.reports)), b"],", rest[1:]]


def _joined(texts: Iterable[Parts]) -> Parts:
    joined = [part for text in texts for part in (b",", *text)]
    return joined[1:]


def size_of(parts: Parts) -> int:
    return sum(map(len, parts))
