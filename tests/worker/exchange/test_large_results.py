"""Reports in parts are the same text, and the large result in it is the very same bytes."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from tests.worker import platform

from fairway.core.ids import Epoch
from fairway.wire import exchange as wire
from fairway.worker.exchange.large_results import (
    LIGHT_BYTES,
    Parts,
    request_text,
    size_of,
    text_of,
    words_text,
)
from fairway.worker.pipe.pipe import RunnerMessage, RunReport

RESULTS = st.sampled_from([b"null", b'{"a":1}', b'"%s"' % (b"x" * LIGHT_BYTES)])
SESSION = "5" * 32


def report(number: int, result: bytes) -> wire.Report:
    return wire.Report(
        n=number, job=f"01890000-0000-7000-8000-{number:012x}", tenant="acme", epoch=Epoch(1),
        token="0" * 32, kind="succeeded", ran_us=5, result=Raw(result),
    )  # fmt: skip


def ended(number: int, result: bytes) -> RunReport:
    return platform.ended(str(number), result=Raw(result))


@given(st.lists(RESULTS, max_size=4), st.booleans())
def test_the_parts_of_a_request_are_its_text(results: list[bytes], draining: bool) -> None:
    reports = [report(number + 1, result) for number, result in enumerate(results)]
    request = wire.ExchangeRequest(session=SESSION, reports=reports, draining=draining)
    parts = request_text(request)
    assert wire.decode_request(b"".join(parts)) == wire.decode_request(wire.encode(request))
    assert size_of(parts) == len(b"".join(parts))


@given(st.lists(RESULTS, max_size=4), st.booleans())
def test_the_parts_of_words_are_their_text(results: list[bytes], stuck: bool) -> None:
    words = RunnerMessage(ended=[ended(n, result) for n, result in enumerate(results)], stuck=stuck)
    decoded = msgspec.json.decode(b"".join(words_text(words)), type=RunnerMessage)
    assert decoded == msgspec.json.decode(msgspec.json.encode(words), type=RunnerMessage)


def test_a_large_result_is_not_copied() -> None:
    large = report(1, b'"%s"' % (b"x" * LIGHT_BYTES))
    texts: list[Parts] = [
        text_of(large),
        words_text(RunnerMessage(ended=[ended(1, bytes(large.result))])),
        request_text(wire.ExchangeRequest(session=SESSION, reports=[report(2, b"1"), large])),
    ]
    for parts in texts:
        copied = sum(len(part) for part in parts if isinstance(part, bytes))
        assert copied < 1000
