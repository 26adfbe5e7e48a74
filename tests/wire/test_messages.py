"""Messages: what is left out has a default, what is unknown or out of range is refused."""

from __future__ import annotations

import msgspec
import pytest

from fairway.wire import exchange, messages


def test_a_job_needs_its_type_alone() -> None:
    job = messages.decode_job(b'{"type":"email.send"}')
    assert (job.type, bytes(job.payload), job.pool, job.priority) == ("email.send", b"{}", None, 5)


def test_a_payload_stays_as_it_was_written() -> None:
    job = messages.decode_job(b'{"type":"t","payload":{ "b" : 1.0, "a":[ ] }}')
    assert bytes(job.payload) == b'{ "b" : 1.0, "a":[ ] }'


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"type":""}',
        b'{"type":"9lives"}',
        b'{"type":"a\\n"}',
        b'{"type":"t","prio":1}',
        b'{"type":"t","priority":10}',
        b'{"type":"t","priority":-1}',
        b'{"type":"t","pool":"Short"}',
        b'{"type":"t","timeout_seconds":0}',
        b'{"type":"t","timeout_seconds":1e9}',
        b'{"type":"%s"}' % (b"t" * 129),
        b"[]",
    ],
)
def test_a_job_that_is_not_right_is_refused(body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        messages.decode_job(body)


SESSION = "0123456789abcdef" * 2


def test_a_worker_may_say_as_little_as_its_session() -> None:
    request = exchange.decode_request(b'{"session":"%s"}' % SESSION.encode())
    assert (request.hello, request.reports, request.running) == (None, [], None)
    assert exchange.decode_request(exchange.encode(request)) == request


def test_a_reply_without_news_is_small() -> None:
    assert exchange.encode(exchange.ExchangeReply()) == b"{}"


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"session":"short"}',
        b'{"session":"%s\\n"}' % SESSION.encode(),
        b'{"session":"%s","wait_ms":"long"}' % SESSION.encode(),
        b'{"session":"%s","hello":{"types":[],"slots":{"short":-1}}}' % SESSION.encode(),
    ],
)
def test_a_call_that_is_not_right_is_refused(body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        exchange.decode_request(body)


def test_a_report_out_of_range_is_refused_before_it_can_hold_up_others() -> None:
    report = {
        "n": 1, "job": "j", "tenant": "t", "epoch": 1, "token": "0" * 32, "kind": "failed",
        "ran_us": 1,
    }  # fmt: skip
    for bad in ({"ran_us": 1 << 63}, {"ran_us": -1}, {"delay_ms": 1 << 63}, {"delay_ms": -1}):
        body = msgspec.json.encode({"session": SESSION, "reports": [{**report, **bad}]})
        with pytest.raises(msgspec.DecodeError):
            exchange.decode_request(body)
    fine = msgspec.json.encode({"session": SESSION, "reports": [report]})
    assert exchange.decode_request(fine).reports[0].n == 1
