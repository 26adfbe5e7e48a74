"""Tokens of leases: every server of a cluster knows them, and nobody else can make one."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.core.ids import Epoch
from fairway.core.run.lease_token import LeaseTokens

JOB = "01980a5e-7c1b-7000-8000-04a2b1c3d4e5"
OTHER = "01980a5e-7c1b-7000-8000-04a2b1c3d4e6"

jobs = st.uuids().map(str)
epochs = st.integers(1, (1 << 63) - 1)
ours = LeaseTokens("secret", "0000000a")
peer = LeaseTokens("secret", "0000000b")
stranger = LeaseTokens("another secret", "0000000a")


@given(jobs, epochs)
def test_every_server_of_the_cluster_knows_a_token_and_no_other_does(job: str, epoch: int) -> None:
    token = ours.make(job, Epoch(epoch))
    assert re.fullmatch("[0-9a-f]{32}", token)
    assert ours.is_real(job, Epoch(epoch), token)
    assert peer.is_real(job, Epoch(epoch), token)
    assert not stranger.is_real(job, Epoch(epoch), token)
    assert peer.make(job, Epoch(epoch)) != token, "two grants of one epoch differ"


@given(jobs, epochs, jobs, epochs)
def test_a_token_is_of_one_lease_alone(job: str, epoch: int, other: str, later: int) -> None:
    token = ours.make(job, Epoch(epoch))
    assert ours.is_real(other, Epoch(epoch), token) == (other == job)
    assert ours.is_real(job, Epoch(later), token) == (later == epoch)


@given(st.integers(0, 31), st.sampled_from("0123456789abcdef"))
def test_a_digit_is_enough_to_spoil_it(place: int, digit: str) -> None:
    token = ours.make(JOB, Epoch(7))
    spoilt = token[:place] + digit + token[place + 1 :]
    assert ours.is_real(JOB, Epoch(7), spoilt) == (spoilt == token)


@given(st.text())
@pytest.mark.parametrize("job", [JOB, "", "\ud800"])
def test_whatever_somebody_says_is_a_token_is_none(job: str, said: str) -> None:
    assert not ours.is_real(job, Epoch(7), said)


def test_job_and_epoch_do_not_run_into_each_other() -> None:
    assert not ours.is_real("2" + JOB, Epoch(1), ours.make(JOB, Epoch(12)))
    assert not ours.is_real(OTHER, Epoch(1), ours.make(JOB, Epoch(1)))


def test_tokens_made_in_turn_are_those_made_alone() -> None:
    """What is common to grants of one epoch is kept, and must not leak into the next."""
    mixed = [ours.make(job, Epoch(epoch)) for epoch in (1, 1, 2, 1) for job in (JOB, OTHER)]
    alone = [
        LeaseTokens("secret", "0000000a").make(job, Epoch(epoch))
        for epoch in (1, 1, 2, 1)
        for job in (JOB, OTHER)
    ]
    assert mixed == alone
