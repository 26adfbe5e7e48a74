"""Orders that cannot be read: whatever is broken, no lease in them is forgotten."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.worker.platform import job_id, lease

from fairway.worker.pipe.pipe import KeeperMessage, RunLease
from fairway.worker.pipe.unreadable_leases import readable_in

WHY = ValueError("it is no good")


def run_lease(number: int) -> RunLease:
    return msgspec.json.decode(msgspec.json.encode(lease(number)), type=RunLease)


def text_of(*leases: RunLease) -> bytes:
    return msgspec.json.encode(KeeperMessage(leases=leases))


@given(st.sets(st.integers(1, 6)), st.sets(st.integers(1, 6)))
def test_each_lease_runs_or_fails_and_none_does_both(good: set[int], bad: set[int]) -> None:
    """A bad one has an attempt that is no number: only its own text cannot be read."""
    bad -= good
    text = text_of(*map(run_lease, sorted(good | bad)))
    for number in bad:
        head = msgspec.json.encode(job_id(number)) + b',"epoch":1'
        before, after = text.split(head)
        text = before + head + after.replace(b'"attempt":1', b'"attempt":"x"', 1)
    orders, ended = readable_in(text, WHY)
    assert {one.job for one in orders.leases} == set(map(job_id, good))
    assert {one.job for one in ended} == set(map(job_id, bad))
    assert all((one.failure, one.epoch) == ("permanent", 1) for one in ended)


@given(st.integers(1, 4), st.data())
def test_a_frame_that_is_cut_off_fails_every_job_whose_name_can_be_read(
    count: int, data: st.DataObject
) -> None:
    text = text_of(*map(run_lease, range(1, count + 1)))
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    orders, ended = readable_in(cut, WHY)
    assert list(orders.leases) == []
    named = [n for n in range(1, count + 1) if b'"%s","epoch":1,' % job_id(n).encode() in cut]
    assert [one.job for one in ended] == list(map(job_id, named))


def test_a_lease_whose_payload_went_astray_does_not_begin() -> None:
    orders, ended = readable_in(text_of(replace(run_lease(1), beside=(5, 0)), run_lease(2)), WHY)
    assert [one.job for one in orders.leases] == [job_id(2)]
    assert [one.job for one in ended] == [job_id(1)]
    assert b"it is no good" in bytes(ended[0].error)
