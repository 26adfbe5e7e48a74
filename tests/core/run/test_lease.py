"""Leases: epochs only ever grow, across grants, terms and owners that wrote nothing down."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.ids import Epoch, Term
from fairway.core.lifecycle import State
from fairway.core.run.lease import (
    TERM_SHIFT,
    LeaseStanding,
    StoredLease,
    judge_naming,
    may_adopt,
    may_judge_silence,
    next_epoch,
    standing_of,
    term_of,
)

terms = st.integers(1, 1 << 30)
grants = st.integers(0, 50)


@given(st.lists(st.tuples(st.integers(1, 5), grants, st.booleans()), min_size=1, max_size=20))
def test_epochs_strictly_grow_whoever_grants(steps: list[tuple[int, int, bool]]) -> None:
    """Each owner grants several times; only some of its grants were ever written down."""
    term = stored = newest = 0
    for gap, count, is_written in steps:
        term += gap
        known = stored
        for _ in range(count):
            epoch = next_epoch(Epoch(known), Term(term))
            assert epoch > newest
            assert term_of(epoch) == term
            newest = known = epoch
        if is_written:
            stored = known


@given(terms, st.integers(1, 1000))
def test_the_first_grant_of_a_term_passes_every_grant_before(term: int, earlier: int) -> None:
    last_of_before = (term - 1 << TERM_SHIFT) + earlier
    assert next_epoch(Epoch(0), Term(term)) > last_of_before
    assert next_epoch(Epoch(last_of_before), Term(term)) > last_of_before


@given(terms, grants, st.integers(1, 3))
def test_a_newer_owner_adopts_what_was_never_written(term: int, stored: int, ahead: int) -> None:
    epoch = next_epoch(Epoch(0), Term(term)) + stored
    assert may_adopt(Epoch(epoch - 1), Epoch(epoch), Term(term + ahead))
    assert may_adopt(Epoch(0), Epoch(epoch), Term(term + ahead))


@given(terms, grants)
def test_what_was_passed_is_never_adopted(term: int, count: int) -> None:
    epoch = next_epoch(Epoch(0), Term(term)) + count
    assert not may_adopt(Epoch(epoch + 1), Epoch(epoch), Term(term + 1))  # a later grant is on disk
    assert not may_adopt(Epoch(epoch), Epoch(epoch), Term(term + 1))  # its own end is on disk
    assert not may_adopt(
        Epoch(0), Epoch(epoch), Term(term)
    )  # this owner's own grants are in its memory
    assert not may_adopt(Epoch(0), Epoch(epoch), Term(max(term - 1, 0)))  # from the future


# -- leases that the memory lacks ------------------------------------------------------------------

tokens = st.sampled_from(["a" * 32, "b" * 32])
rows = st.builds(
    StoredLease,
    st.sampled_from(list(State)),
    st.integers(0, 4 << TERM_SHIFT),
    tokens | st.none(),
)


@given(
    rows | st.none(),
    st.integers(1, 4 << TERM_SHIFT),
    tokens,
    st.none() | st.integers(1, 4).map(Term),
)
def test_a_lease_stands_only_as_its_row_tells(
    stored: StoredLease | None, epoch: int, token: str, term: Term | None
) -> None:
    standing = standing_of(stored, Epoch(epoch), token, term)
    if standing is LeaseStanding.WRITTEN:
        assert stored == (State.RUNNING, epoch, token)
    if standing is LeaseStanding.UNWRITTEN:
        assert stored is not None
        assert (stored.state, stored.epoch < epoch) == (State.QUEUED, True)
        assert term is None or term_of(Epoch(epoch)) < term
    if stored == (State.RUNNING, epoch, token):
        assert standing is LeaseStanding.WRITTEN
    if stored is None or stored.state not in (State.QUEUED, State.RUNNING):
        assert standing is LeaseStanding.OVER


# -- what a worker no longer names -----------------------------------------------------------------

GRACE_US = 10
JOBS = ("a", "b", "c")


class Told:
    """A worker that names what it runs; its lists may be as old as the grace when they come."""

    def __init__(self) -> None:
        self.now_us = 0
        self.sent: dict[str, int] = {}  # job → when its lease was sent, by the server's memory
        self.missed: dict[tuple[str, Epoch], int] = {}
        self.lost: set[str] = set()

    def hear(self, named: set[str]) -> None:
        sent = [(job, Epoch(1)) for job in self.sent]
        names = {(job, Epoch(1)) for job in named}
        found = judge_naming(sent, names, self.missed, self.now_us, GRACE_US)
        self.missed = found.missed_since_us
        self.lost |= set(found.lost)
        for job in found.lost:
            del self.sent[job]


steps = st.lists(
    st.tuples(st.integers(1, 8), st.integers(0, GRACE_US - 1), st.sets(st.sampled_from(JOBS))),
    max_size=40,
)


@given(steps)
def test_what_a_worker_runs_is_never_lost_by_a_list_that_is_late(
    steps: list[tuple[int, int, set[str]]],
) -> None:
    """It runs each job from the moment it was sent; lists tell what ran a while ago."""
    told = Told()
    for pause_us, age_us, new in steps:
        told.now_us += pause_us
        for job in new - told.sent.keys():
            told.sent[job] = told.now_us
        made_us = told.now_us - age_us
        told.hear({job for job, sent_us in told.sent.items() if sent_us <= made_us})
    assert told.lost == set()


@given(st.lists(st.integers(1, 8), min_size=1, max_size=40), st.sets(st.sampled_from(JOBS)))
def test_what_a_worker_never_names_is_lost_within_the_grace_and_one_list(
    pauses_us: list[int], named: set[str]
) -> None:
    told = Told()
    told.sent = dict.fromkeys(JOBS, 0)
    for pause_us in pauses_us:
        told.now_us += pause_us
        told.hear(named)
    first_us = pauses_us[0]
    expected = set(JOBS) - named if told.now_us - first_us >= GRACE_US else set()
    assert told.lost == expected


@given(st.floats(0, 1000), st.floats(0.1, 600))
def test_silence_is_judged_after_workers_had_time_to_speak(listening: float, lease: float) -> None:
    assert may_judge_silence(listening, lease) == (listening >= min(lease / 2, 5.0))
    assert may_judge_silence(lease, lease)  # never later than a lease after a take-over
