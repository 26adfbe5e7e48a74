"""The pipe between keeper and runner: frames arrive whole, however the bytes come."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw, Struct
from tests.worker.platform import ended, job_id, lease

from fairway.worker.pipe.pipe import (
    _LENGTH,
    FRAME_BYTES_MAX,
    LARGE_BYTES,
    KeeperMessage,
    Pipe,
    PipeHandlers,
    RunLease,
    RunnerMessage,
)
from fairway.worker.pipe.unreadable_leases import readable_in

SIZES = st.sampled_from([0, 1, 1000, LARGE_BYTES - 200, LARGE_BYTES, 3 * LARGE_BYTES])


def words(number: int, size: int) -> RunnerMessage:
    result = Raw(b'"' + b"x" * size + b'"')
    return RunnerMessage(ended=[ended(str(number), result=result)])


@given(st.lists(SIZES, min_size=1, max_size=6), st.data())
def test_any_cut_of_the_bytes_gives_the_same_messages(
    sizes: list[int], data: st.DataObject
) -> None:
    sent = [words(number, size) for number, size in enumerate(sizes)]
    texts = [msgspec.json.encode(one) for one in sent]
    stream = b"".join(_LENGTH.pack(len(text)) + text for text in texts)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=8))
    ends = [end for end, _ in zip(_frame_ends(texts), range(3), strict=False)]
    heard: list[RunnerMessage] = []
    pipe = Pipe(RunnerMessage, PipeHandlers(heard.append, lambda: None, _never))
    for start, end in pairwise(sorted({0, len(stream), *cuts, *ends})):
        pipe.data_received(stream[start:end])
    assert heard == sent


def _never(text: bytes, error: Exception) -> None:
    raise AssertionError(error)


def _frame_ends(texts: list[bytes]) -> list[int]:
    found, end = [], 0
    for text in texts:
        end += _LENGTH.size + len(text)
        found.append(end)
    return found


# -- what is foreign, and what cannot be read ----------------------------------------------------


class Ears:
    """One end of a pipe, and what it heard."""

    def __init__(self, kind: type[Struct], bytes_max: int = FRAME_BYTES_MAX) -> None:
        self.heard: list[Any] = []
        self.garbage: list[tuple[bytes, Exception]] = []
        hearing = PipeHandlers(self.heard.append, lambda: None, self._garbage, bytes_max)
        self.pipe: Pipe[Any] = Pipe(kind, hearing)

    def _garbage(self, text: bytes, error: Exception) -> None:
        self.garbage.append((text, error))


class Wire:
    """Stands for a transport: keeps what was written."""

    def __init__(self) -> None:
        self.written = b""

    def is_closing(self) -> bool:
        return False

    def writelines(self, parts: list[bytes | memoryview]) -> None:
        self.written += b"".join(parts)


def sent(lease: RunLease) -> bytes:
    """The bytes of a frame with this lease, as a keeper sends it."""
    pipe, wire = Ears(RunnerMessage).pipe, Wire()
    pipe._transport = wire
    bare, foreign = lease.apart()
    pipe.send_beside(KeeperMessage(leases=[bare]), foreign)
    return wire.written


def fetched(payload: bytes, state: bytes = b"null", **more: Any) -> RunLease:
    given = msgspec.structs.asdict(lease(1, payload_bytes=len(payload), **more))
    return RunLease(**given | {"payload": Raw(payload), "checkpoint": Raw(state)})


SPLICE = (
    b'{},"x":1},{"job":"01890000-0000-7000-8000-00000000dead","epoch":1,"token":"0","type":"who",'
    b'"pool":"short","tenant":"victim","attempt":1,"delivery":1,"payload":{"amount":1000000}'
)


@given(
    st.binary(max_size=300) | st.sampled_from([SPLICE, b'{},"tenant":"victim"', b"}}}} no json"]),
    st.binary(max_size=300) | st.sampled_from([SPLICE, b"]}]}"]),
    st.data(),
)
def test_what_was_fetched_is_one_lease_and_nothing_else(
    payload: bytes, state: bytes, data: st.DataObject
) -> None:
    stream = sent(fetched(payload, state)) + _frame(KeeperMessage(cancel=["after"]))
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=4))
    ears = Ears(KeeperMessage)
    for start, end in pairwise(sorted({0, len(stream), *cuts})):
        ears.pipe.data_received(stream[start:end])
    assert ears.garbage == []
    orders, after = ears.heard
    (found,) = orders.leases
    told = lease(1)
    assert (found.job, found.tenant, found.token) == (told.job, told.tenant, told.token)
    assert (bytes(found.payload), bytes(found.checkpoint)) == (payload, state)
    assert after.cancel == ["after"]


def _frame(message: Struct) -> bytes:
    text = msgspec.json.encode(message)
    return _LENGTH.pack(len(text)) + text


@pytest.mark.parametrize("is_short", [True, False])
def test_a_payload_of_another_size_than_the_lease_says_fails_its_job(is_short: bool) -> None:
    wrong = fetched(b'{"n":1}')
    wrong.payload_bytes = 6 if is_short else 8
    ears = Ears(KeeperMessage)
    ears.pipe.data_received(sent(wrong))
    ((text, error),) = ears.garbage
    orders, (ended,) = readable_in(text, error)
    assert list(orders.leases) == []
    assert (ended.job, ended.failure) == (job_id(1), "permanent")
    assert "has 7 bytes" in msgspec.json.decode(ended.error)["message"]


def test_one_lease_that_cannot_be_read_fails_alone() -> None:
    good, bad = lease(1), lease(2)
    # as keepers do
    text = msgspec.json.encode(KeeperMessage(leases=[good, bad]))  # type: ignore[list-item]
    head, _, tail = text.rpartition(b'"attempt":1')
    text = head + b'"attempt":"x"' + tail
    orders, (ended,) = readable_in(text, ValueError("no"))
    assert [one.job for one in orders.leases] == [good.job]
    assert (ended.job, ended.epoch, ended.failure) == (bad.job, 1, "permanent")


@pytest.mark.parametrize("tail", [b"", b"\xff", b"}}}} no json", b"[" * 5000])
def test_of_a_frame_that_is_no_json_every_job_that_it_names_fails(tail: bytes) -> None:
    text = msgspec.json.encode(KeeperMessage(leases=[lease(1), lease(2)]))[:-2] + tail  # type: ignore[list-item]  # as keepers do
    orders, ended = readable_in(text, ValueError("no"))
    assert list(orders.leases) == []
    assert {one.job for one in ended} == {job_id(1), job_id(2)}


@given(st.binary(max_size=200))
def test_no_bytes_end_whoever_hears_them(noise: bytes) -> None:
    for kind in (KeeperMessage, RunnerMessage):
        ears = Ears(kind, 1 << 20)
        ears.pipe.data_received(_LENGTH.pack(len(noise)) + noise)
        ears.pipe.data_received(_LENGTH.pack(len(noise) | (1 << 31)) + noise)
        ears.pipe.data_received(noise)
    readable_in(noise, ValueError("no"))


def test_a_frame_may_not_be_longer_than_is_heard() -> None:
    ears = Ears(RunnerMessage, 1000)
    ears.pipe.data_received(_LENGTH.pack(1001) + b"x" * 500)
    ears.pipe.data_received(b"x" * (1 << 20))
    assert len(ears.garbage) == 1
    assert len(ears.pipe._buffer) == 0


def test_nothing_may_stand_beside_a_runners_words() -> None:
    ears = Ears(RunnerMessage)
    text = msgspec.json.encode(RunnerMessage())
    body = _LENGTH.pack(len(text)) + text + b"beside"
    ears.pipe.data_received(_LENGTH.pack(len(body) | (1 << 31)) + body)
    assert (len(ears.heard), len(ears.garbage)) == (0, 1)
