"""Both sides of the exchange as a model: a worker around a real ledger, a server of a few lines.

The worker does what the keeper does with its ledger, in the same order, and nothing else. The
server is written anew from the three rules at the top of `wire/exchange.py`, so that it cannot
share the worker's mistakes. Between them is a list of calls: a test decides what becomes of each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from msgspec import Raw
from msgspec.structs import replace
from tests.worker.platform import ended, job_id, lease

from fairway.core.ids import Epoch
from fairway.wire.exchange import (
    NULL,
    ExchangeReply,
    ExchangeRequest,
    Hello,
    Holding,
    Lease,
    Report,
)
from fairway.worker.exchange.large_results import LIGHT_BYTES, is_heavy
from fairway.worker.exchange.lease_ledger import LeaseLedger

Run = tuple[str, Epoch]  # a job and the epoch of the lease under which it ran

HELLO = Hello(types=[], slots={})
HEAVY = Raw(b'"%s"' % (b"x" * LIGHT_BYTES))
JOURNALED, UNJOURNALED = "medium", "short"


@dataclass(eq=False)
class Call:
    """One call on its way there and back."""

    request: ExchangeRequest
    greetings: int  # of the worker when it was made
    is_parcel: bool = False  # heavy reports, beside the heartbeat
    hellos: int | None = None  # that the server had heard when this came; None: it did not come
    is_given_up: bool = False  # its worker hears no answer to it any more
    reply: ExchangeReply | None = None

    @property
    def has_arrived(self) -> bool:
        return self.hellos is not None


@dataclass
class Server:
    """What is on disk survives `crash`; what it knows of the session does not."""

    jobs: dict[str, int] = field(default_factory=dict)  # job → epoch of its newest lease
    pools: dict[str, str] = field(default_factory=dict)
    queued: set[str] = field(default_factory=set)
    leased: dict[str, int] = field(default_factory=dict)  # job → epoch in force
    recorded: dict[Run, Report] = field(default_factory=dict)  # on disk
    refused: set[Run] = field(default_factory=set)
    is_greeted: bool = False
    hello_call: int = 0
    hellos: int = 0
    pending: dict[Run, Report] = field(default_factory=dict)  # heard, not on disk
    numbers: dict[Run, set[int]] = field(default_factory=lambda: defaultdict(set))
    news: ExchangeReply = field(default_factory=ExchangeReply)

    def submit(self, pool: str) -> None:
        job = job_id(len(self.jobs) + 1)
        self.jobs[job], self.pools[job] = 0, pool
        self.queued.add(job)

    def hear(self, call: Call) -> None:
        request, call.hellos = call.request, self.hellos
        is_stale = 0 < request.call < self.hello_call
        if is_stale or (request.hello is None and not self.is_greeted):
            call.reply = ExchangeReply(resync=not is_stale or bool(request.reports))
            return
        if request.hello is not None:
            self.is_greeted, self.hello_call = True, request.call or self.hello_call
            self.hellos += 1
            self.news, self.numbers = ExchangeReply(), defaultdict(set)
        call.hellos = self.hellos
        for report in request.reports:
            self._hear_report(report)
        if request.hello is not None or request.running_is_all:
            self._agree(request.running or [], request.reports)

    def _hear_report(self, report: Report) -> None:
        run = report.job, report.epoch
        assert report.token == token_of(report.epoch), "the token is that of its lease"
        if run in self.recorded:
            self.news.recorded.append(report.n)
        elif run in self.pending or self.leased.get(report.job) == report.epoch:
            self.pending[run] = report
            self.numbers[run].add(report.n)
        else:
            self.refused.add(run)
            self.news.refused.append(report.n)

    def _agree(self, running: Iterable[Holding], reports: Iterable[Report]) -> None:
        named = {(one.job, one.epoch) for one in running}
        for job, epoch in named:
            if self.leased.get(job) != epoch and (job, epoch) not in self.recorded:
                self._revoke(job, epoch)
        named |= {(one.job, one.epoch) for one in reports} | set(self.pending)
        held = self.leased.items()
        self.news.leases += [self._lease(*run) for run in held if run not in named]

    def _revoke(self, job: str, epoch: int) -> None:
        self.news.revoked.append(job)
        self.news.revoked_epochs.append(Epoch(epoch))

    def _lease(self, job: str, epoch: int) -> Lease:
        plain = lease(int(job[-12:], 16), pool=self.pools[job])
        return replace(plain, epoch=epoch, token=token_of(epoch))

    def grant(self) -> None:
        for job in sorted(self.queued):
            self.jobs[job] += 1
            self.leased[job] = self.jobs[job]
            self.news.leases.append(self._lease(job, self.jobs[job]))
        self.queued.clear()

    def send_again(self) -> None:
        held = [self._lease(*run) for run in self.leased.items() if run not in self.pending]
        self.news.leases = [*{one.job: one for one in [*self.news.leases, *held]}.values()]

    def answer(self, call: Call) -> None:
        """What a hello has overtaken is heard by nobody, so it takes no news away."""
        call.reply = ExchangeReply()
        if call.hellos == self.hellos:
            call.reply, self.news = self.news, call.reply

    def commit(self) -> None:
        """What was heard is on disk; a lease that was lost meanwhile is fenced off there."""
        for run, report in self.pending.items():
            if self.leased.get(report.job) == report.epoch:
                del self.leased[report.job]
                self.recorded[run] = report
                self.news.recorded += self.numbers.pop(run, ())
            else:
                self.refused.add(run)
                self.news.refused += self.numbers.pop(run, ())
        self.pending.clear()

    def take_back(self, job: str) -> None:
        """Its lease is lost: the job is queued again, under a newer one."""
        epoch = self.leased.pop(job)
        self.queued.add(job)
        self.news.leases = [one for one in self.news.leases if one.job != job]
        self._revoke(job, epoch)

    def crash(self) -> None:
        """Another server goes on with what is on disk."""
        self.is_greeted, self.hello_call = False, 0
        self.pending, self.numbers, self.news = {}, defaultdict(set), ExchangeReply()


class Worker:
    """The keeper's use of a ledger, without processes and without a network."""

    def __init__(self, ledger: LeaseLedger, calls: list[Call]) -> None:
        self.ledger, self.calls = ledger, calls
        self.runs: dict[str, Epoch] = {}  # what runners do: job → epoch
        self.strays: list[Run] = []  # stopped without a report, and not dead yet
        self.parcel: set[int] = set()  # reports that travel beside the heartbeat
        self.journal: dict[int, Report] = {}
        self.must_greet, self.is_greeted = True, False
        self.call_number = self.greetings = 0
        self.begun: set[Run] = set()
        self.told_lost: set[Run] = set()  # leases it was told of that they are another's

    # -- runs ----------------------------------------------------------------------------------

    def end(self, job: str, kind: str = "succeeded", result: Raw = NULL) -> None:
        self.ledger.ended(ended(job, kind, epoch=self.runs.pop(job), result=result))
        self._note()

    def stray_end(self, run: Run) -> None:
        """A run that was given up says its end all the same."""
        self.ledger.ended(ended(run[0], epoch=run[1]))
        self._note()

    def _note(self) -> None:
        self.journal |= {one.n: one for one in self.ledger.take_for_journal()}
        self.parcel |= {one.n for one in self.ledger.take_heavy()}

    # -- calls ---------------------------------------------------------------------------------

    def speak(self, *, naming: bool) -> Call:
        if self.must_greet:
            unheard = self.ledger.take_unheard()
            self.parcel |= {one.n for one in unheard if is_heavy(one)}
            reports = [one for one in unheard if one.n not in self.parcel]
            request = self._request(hello=True)
            request.reports, request.running = reports, self.ledger.everything(reports)
            self.must_greet = self.is_greeted = False
        else:
            request = self._request(hello=False)
            request.running, request.reports = self.ledger.take_progress(), self.ledger.take_fresh()
            if naming:
                request.running_is_all = True
                request.running = self.ledger.with_all_held(request.running or [])
        return self._call(request)

    def _request(self, *, hello: bool) -> ExchangeRequest:
        self.call_number += 1
        return ExchangeRequest(
            session="0" * 32, call=self.call_number, hello=HELLO if hello else None
        )

    def _call(self, request: ExchangeRequest, *, is_parcel: bool = False) -> Call:
        call = Call(request, self.greetings, is_parcel)
        self.calls.append(call)
        return call

    def send_parcel(self) -> Call:
        found = [one for one in map(self.ledger.unheard, sorted(self.parcel)) if one is not None]
        self.parcel = {one.n for one in found}
        request = ExchangeRequest(session="0" * 32, reports=found)
        if self.ledger.has_inherited(found):
            request.hello, request.running = HELLO, self.ledger.everything(found)
        return self._call(request, is_parcel=True)

    def hear(self, call: Call, reply: ExchangeReply) -> None:
        self.calls.remove(call)
        self.must_greet = self.must_greet or reply.resync or bool(reply.refused)
        if reply.resync:
            self.is_greeted = False
        heard = reply.recorded + reply.refused
        self.ledger.heard(heard)
        for number in heard:
            self.journal.pop(number, None)
        given_up = self.ledger.lost(reply.revoked, reply.revoked_epochs)
        self.told_lost |= set(zip(reply.revoked, reply.revoked_epochs, strict=True))
        given_up += self.ledger.superseded(reply.leases)
        self.strays += [(job, self.runs.pop(job)) for job in given_up]
        for one in self.ledger.received(reply.leases):
            assert one.job not in self.runs, "two runs of a job at once"
            assert (one.job, one.epoch) not in self.begun, "a lease is begun once"
            self.begun.add((one.job, one.epoch))
            self.runs[one.job] = one.epoch
        self._heard_out(call, reply)

    def _heard_out(self, call: Call, reply: ExchangeReply) -> None:
        if call.is_parcel:
            if self.is_greeted and self.greetings == call.greetings:
                self.parcel -= {one.n for one in call.request.reports}
        elif call.request.hello is not None and not reply.resync:
            self.greetings += 1
            self.is_greeted = True

    def fail(self) -> None:
        """A call broke: whatever else is under way is given up, and a hello says it all again."""
        for call in self.calls:
            call.is_given_up = True
        self.must_greet, self.is_greeted = True, False


def token_of(epoch: int) -> str:
    return f"{epoch:032x}"
