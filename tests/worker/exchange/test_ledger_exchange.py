"""The ledger against a model of the exchange: every end is said until it is heard, none is lost.

Replies are lost, come late and in another order; leases are taken back and granted anew; servers
forget the session; the worker dies and another life inherits its journal. Whatever the order:

- an end of a run that was not taken back is said until its number comes back;
- nothing is forgotten that the platform has not recorded or refused;
- no lease is begun twice, and a run that was given up says nothing under anybody's lease;
- once the network is well again, every job ends, each recorded once for its newest lease.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.properties import tried
from tests.worker.exchange.two_sides import (
    HEAVY,
    JOURNALED,
    UNJOURNALED,
    Call,
    Run,
    Server,
    Worker,
)
from tests.worker.platform import ignore

from fairway.wire.exchange import NULL, ExchangeReply
from fairway.worker.exchange.lease_ledger import LeaseLedger

CALLS_MAX = 2  # as the keeper
JOBS_MAX = 8
PLACES = st.integers(0, 7)
POOLS = st.sampled_from([JOURNALED, UNJOURNALED])
SELDOM = st.sampled_from([False, False, False, False, True])  # or nothing is ever under way
ENDS = {"well": ("succeeded", NULL), "large": ("succeeded", HEAVY), "bad": ("failed", NULL)}


class Exchange(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Call] = []
        self.server = Server()
        self.worker = Worker(LeaseLedger([JOURNALED], on_failure=ignore), self.calls)
        self.owed: dict[Run, str] = {}  # ends that must be said until they are heard → kind

    @initialize(pools=st.lists(POOLS, min_size=1, max_size=3))
    def begin(self, pools: list[str]) -> None:
        """Trouble is rarely met by a worker that has nothing to do."""
        for pool in pools:
            self.server.submit(pool)
        self._exchange()
        self.server.grant()
        self._exchange()

    def _exchange(self) -> None:
        """A whole call, there and back."""
        call = self.worker.speak(naming=False)
        self.server.hear(call)
        if call.reply is None:
            self.server.answer(call)
        assert call.reply is not None
        self.worker.hear(call, call.reply)

    # -- work ----------------------------------------------------------------------------------

    @precondition(lambda self: len(self.server.jobs) < JOBS_MAX)
    @rule(pool=POOLS)
    def work_comes(self, pool: str) -> None:
        self.server.submit(pool)
        if self.server.is_greeted:
            self.server.grant()

    @precondition(lambda self: self.server.is_greeted and self.server.queued)
    @rule()
    def grant(self) -> None:
        self.server.grant()

    @precondition(lambda self: self._may_speak())
    @rule()
    def all_goes_well(self) -> None:
        """Also beside a call that is held: then this one overtakes it."""
        self._exchange()
        self.server.commit()

    @precondition(lambda self: self.worker.runs)
    @rule(place=PLACES, how=st.sampled_from(sorted(ENDS)))
    def run_ends(self, place: int, how: str) -> None:
        runs = list(self.worker.runs.items())
        job, epoch = runs[place % len(runs)]
        self.owed[job, epoch] = ENDS[how][0]
        self.worker.end(job, *ENDS[how])

    @precondition(lambda self: self.worker.runs)
    @rule(place=PLACES)
    def run_progresses(self, place: int) -> None:
        runs = list(self.worker.runs)
        self.worker.ledger.progressed(runs[place % len(runs)], NULL)

    @precondition(lambda self: self.worker.strays)
    @rule(place=PLACES)
    def run_that_was_given_up_ends(self, place: int) -> None:
        before = self._unheard()
        self.worker.stray_end(self.worker.strays.pop(place % len(self.worker.strays)))
        assert self._unheard() == before, "nobody may hear of it"

    # -- the network ---------------------------------------------------------------------------

    def _open_calls(self) -> list[Call]:
        return [one for one in self.calls if not one.is_given_up]

    def _may_speak(self) -> bool:
        return sum(not one.is_parcel for one in self._open_calls()) < CALLS_MAX

    @precondition(lambda self: self._may_speak())
    @rule(naming=st.booleans())
    def speak(self, naming: bool) -> None:
        self.worker.speak(naming=naming)

    @precondition(
        lambda self: (
            self.worker.parcel
            and self.worker.is_greeted
            and not any(c.is_parcel for c in self._open_calls())
        )
    )
    @rule()
    def send_parcel(self) -> None:
        self.worker.send_parcel()

    @precondition(lambda self: any(not one.has_arrived for one in self.calls))
    @rule(place=PLACES)
    def arrives(self, place: int) -> None:
        """Calls that their worker gave up arrive, too."""
        under_way = [one for one in self.calls if not one.has_arrived]
        self.server.hear(under_way[place % len(under_way)])

    @precondition(lambda self: any(one.has_arrived and not one.reply for one in self.calls))
    @rule(place=PLACES)
    def server_answers(self, place: int) -> None:
        held = [one for one in self.calls if one.has_arrived and not one.reply]
        self.server.answer(held[place % len(held)])

    @precondition(lambda self: any(one.reply for one in self._open_calls()))
    @rule(place=PLACES)
    def reply_comes(self, place: int) -> None:
        """In any order: one may overtake the other."""
        replied = [one for one in self._open_calls() if one.reply]
        call = replied[place % len(replied)]
        assert call.reply is not None
        self.worker.hear(call, call.reply)

    @precondition(lambda self: self._open_calls())
    @rule(now=SELDOM)
    def call_breaks(self, now: bool) -> None:
        if now:
            self.worker.fail()

    @precondition(lambda self: any(one.is_given_up and one.has_arrived for one in self.calls))
    @rule()
    def forget_what_was_given_up(self) -> None:
        self.calls[:] = [one for one in self.calls if not (one.is_given_up and one.has_arrived)]

    # -- the other side ------------------------------------------------------------------------

    @precondition(lambda self: self.server.pending)
    @rule()
    def commit(self) -> None:
        self.server.commit()

    @precondition(lambda self: self.server.leased)
    @rule(place=PLACES)
    def lease_is_taken_back(self, place: int) -> None:
        jobs = sorted(self.server.leased)
        self.server.take_back(jobs[place % len(jobs)])

    @precondition(lambda self: self.server.leased and self.server.is_greeted)
    @rule(place=PLACES, is_told=st.booleans())
    def lease_is_granted_anew(self, place: int, is_told: bool) -> None:
        """To the same worker, where the old run goes on; a new owner may not know of that."""
        self.lease_is_taken_back(place)
        if not is_told:
            self.server.news.revoked, self.server.news.revoked_epochs = [], []
        self.server.grant()

    @precondition(lambda self: self.server.leased and self.server.is_greeted)
    @rule()
    def leases_are_sent_again(self) -> None:
        """What a server believes may be older than what its worker knows."""
        self.server.send_again()

    @rule(now=SELDOM)
    def server_crashes(self, now: bool) -> None:
        if now:
            self.server.crash()
            self._break_what_was_held()

    def _break_what_was_held(self) -> None:
        if any(one.has_arrived and not one.is_given_up for one in self.calls):
            self.worker.fail()
        self.calls[:] = [one for one in self.calls if not one.has_arrived]

    @rule(now=SELDOM)
    def worker_dies(self, now: bool) -> None:
        if now:
            self._die()

    def _die(self) -> None:
        """Another life inherits what was in the journal; the rest is the platform's to find out."""
        left = list(self.worker.journal.values())
        kept = {run for run in self.owed if self.server.pools[run[0]] == JOURNALED}
        heard = {*self.server.recorded, *self.server.refused}
        self.owed = {run: kind for run, kind in self.owed.items() if run in kept | heard}
        self.calls.clear()
        self.server.crash()  # of this session
        self.worker = Worker(LeaseLedger([JOURNALED], on_failure=ignore), self.calls)
        self.worker.journal = {one.n: one for one in self.worker.ledger.inherit(left)}
        self.worker.parcel = {one.n for one in self.worker.ledger.take_heavy()}
        unnamed = set(self.server.leased.items()) - kept
        for job, _ in sorted(unnamed):  # its silence costs it these
            self.server.take_back(job)
        self.server.news = ExchangeReply()

    # -- the law -------------------------------------------------------------------------------

    def _unheard(self) -> dict[Run, str]:
        return {(one.job, one.epoch): one.kind for one in self.worker.ledger.all_unheard()}

    @invariant()
    def nothing_is_lost_and_nothing_made_up(self) -> None:
        unheard = self._unheard()
        answered = {*self.server.recorded, *self.server.refused}
        forgotten = {run for run in self.owed if run not in unheard and run not in answered}
        assert not forgotten, "neither said any more, nor on disk"
        assert unheard.items() <= self.owed.items(), "said, and no run ended so"
        for run, report in self.server.recorded.items():
            assert self.owed[run] == report.kind

    @invariant()
    def numbers_are_unique(self) -> None:
        numbers = [one.n for one in self.worker.ledger.all_unheard()]
        assert len(set(numbers)) == len(numbers) == self.worker.ledger.unheard_count

    @invariant()
    def what_runs_is_what_the_ledger_holds(self) -> None:
        held = {job: one.epoch for job, one in self.worker.ledger.running.items()}
        assert held == self.worker.runs
        assert not self.worker.told_lost & set(self.worker.runs.items())

    def teardown(self) -> None:
        """The network is well again: a few rounds, and every job has ended."""
        rounds = 4 * JOBS_MAX
        while rounds and not self._is_over():
            self._round()
            rounds -= 1
        assert self.worker.ledger.is_settled, (self._unheard(), self.worker.runs)
        assert not self.server.queued
        assert not self.server.leased
        for job, epoch in self.server.jobs.items():
            assert (job, epoch) in self.server.recorded
            assert sum(run[0] == job for run in self.server.recorded) == 1

    def _is_over(self) -> bool:
        is_settled = self.worker.ledger.is_settled and not self.calls
        return is_settled and not (self.server.queued or self.server.leased)

    def _round(self) -> None:
        for job, epoch in list(self.worker.runs.items()):
            self.owed[job, epoch] = "succeeded"
            self.worker.end(job)
        if not any(not one.is_parcel for one in self._open_calls()):
            self.worker.speak(naming=False)
        is_free = self.worker.parcel and not any(c.is_parcel for c in self._open_calls())
        if is_free and self.worker.is_greeted:
            self.worker.send_parcel()
        for call in list(self.calls):
            if not call.has_arrived:
                self.server.hear(call)
            self.server.commit()
            if self.server.is_greeted:
                self.server.grant()
            if call.reply is None:
                self.server.answer(call)
            if call.is_given_up:
                self.calls.remove(call)
            elif call.reply is not None:
                self.worker.hear(call, call.reply)


Exchange.TestCase.settings = tried(30, stateful_step_count=30)
TestExchange = Exchange.TestCase
