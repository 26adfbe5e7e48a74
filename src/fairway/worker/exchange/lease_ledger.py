"""What a worker holds and what it still has to say: pure bookkeeping, no I/O.

Every lease that was received is *held* until its report is acknowledged. A report is *fresh* until
it was sent once and *unheard* until its number comes back. The last runs that were heard of are
remembered: a reply that was overtaken on its way may bring their leases once more. Where a worker
serves several owners, what is to be said is kept in a part for each, by the shards of the jobs.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw

from fairway.core.ids import Epoch, shard_of
from fairway.wire.exchange import NULL, Holding, Lease, Report
from fairway.worker.exchange.large_results import is_heavy

if TYPE_CHECKING:  # which needs OpenTelemetry
    from fairway.worker.exchange.run_spans import RunSpans

NAMING_SECONDS = 15.0  # between two lists of all that runs
DONE_MAX = 8192  # runs heard of: so many are remembered at least, and twice as many at most
NEWEST = Epoch((1 << 63) - 1)  # no lease has a newer epoch


class Naming:
    """When to name all that runs; a hello does it, too."""

    def __init__(self) -> None:
        self._done_at = 0.0

    @property
    def is_due(self) -> bool:
        return time.monotonic() - self._done_at >= NAMING_SECONDS

    def done(self) -> bool:
        """Answers whether it was due; from now on it is not."""
        was_due = self.is_due
        if was_due:
            self._done_at = time.monotonic()
        return was_due


class Part:
    """What one owner is to be told of the runs of its shards."""

    __slots__ = ("fresh", "heavy", "last_words", "progress", "running")

    def __init__(self) -> None:
        self.running = 0  # started and not ended
        self.fresh: list[Report] = []
        self.heavy: list[Report] = []  # fresh, too, and not for a heartbeat
        self.progress: dict[str, Raw] = {}
        self.last_words: list[Holding] = []  # progress of runs that ended without success

    @property
    def has_news(self) -> bool:
        return bool(self.fresh or self.progress or self.last_words)


class LeaseLedger:
    def __init__(
        self,
        journaled_pools: Iterable[str] = (),
        *,
        on_failure: Callable[[Lease, Report], None],
        spans: RunSpans | None = None,
    ) -> None:
        self._spans = spans  # of runs, where they are wanted
        self._on_failure = on_failure  # of a run that failed, before it is reported
        self._journaled_pools = frozenset(journaled_pools)
        self._for_journal: list[Report] = []
        self.running: dict[str, Lease] = {}  # started and not ended
        self._reported: dict[str, int] = {}  # job → number of its report, while unheard
        self._unheard: dict[int, Report] = {}
        self.whole = Part()  # of a worker with one owner
        self._by_shard: Mapping[int, Part] = {}  # where there are several owners
        self._number = 0
        self._inherited: set[int] = set()  # reports of an earlier life
        self._unnamed: set[int] = set()  # reports whose leases are not said to be held
        self._done: dict[str, Epoch] = {}  # job → epoch of a run that was heard of
        self._done_before: dict[str, Epoch] = {}  # the same, of those before them

    def divide(self, by_shard: Mapping[int, Part], rest: Part) -> None:
        """From now on a job's owner is told by its shard's part; of a shard that nobody owns just
        now `rest` is. Without any, one is told everything.

        Reports that nobody has heard of are in no part: the hello that follows brings them along.
        """
        before = {self._part(lease) for lease in self.running.values()}
        progress = [item for part in before for item in part.progress.items()]
        for part in before:
            part.running, part.progress = 0, {}
        self._by_shard, self.whole = by_shard, rest
        for lease in self.running.values():
            part = self._part(lease)
            part.running += 1
        for job, said in progress:
            if (held := self.running.get(job)) is not None:
                self._part(held).progress[job] = said

    def _part(self, one: Lease | Report) -> Part:
        if not self._by_shard:
            return self.whole
        shard = shard_of(one.job) if one.shard is None else one.shard
        return self._by_shard.get(shard, self.whole)

    def received(self, leases: list[Lease]) -> list[Lease]:
        """The leases that are news: a lease sent again is answered by what we already know.

        So is one that is older than what was met here: its reply came late.
        """
        running, reported, new = self.running, self._reported, []
        done, before = self._done, self._done_before
        for lease in leases:
            job = lease.job
            is_met = job in running or job in reported or job in done or job in before
            if is_met and self._is_known(lease):
                continue
            if lease.traceparent is not None and self._spans is not None:
                lease = self._spans.begun(lease)
            if job not in running:
                part = self._part(lease) if self._by_shard else self.whole
                part.running += 1
            running[job] = lease
            new.append(lease)
        return new

    def _is_known(self, lease: Lease) -> bool:
        job, epoch = lease.job, lease.epoch
        held = self.running.get(job)
        number = self._reported.get(job)
        if held is not None and held.epoch >= epoch:
            return True
        if number is not None and self._unheard[number].epoch >= epoch:
            return True
        return epoch <= max(self._done.get(job, 0), self._done_before.get(job, 0))

    def ended(self, report: Report) -> None:
        """A run is over. Whose it was its lease says, whatever stands in the report."""
        job = report.job
        lease = self.running.pop(job, None)
        if lease is None:
            return  # revoked meanwhile: nobody may hear of it
        if report.epoch != lease.epoch:
            self.running[job] = lease  # another run of the job, under a newer lease, goes on
            return
        part = self._part(lease) if self._by_shard else self.whole
        part.running -= 1
        if part.progress and (progress := part.progress.pop(job, None)) is not None:
            part.last_words.append(_holding(lease, progress, ended=True))  # before the report
        report.n = self._number = self._number + 1
        report.tenant, report.token, report.shard = lease.tenant, lease.token, lease.shard
        if lease.traceparent is not None and self._spans is not None:
            self._spans.ended(report)
        if report.failure is not None:
            self._on_failure(lease, report)
        if lease.pool in self._journaled_pools:
            self._for_journal.append(report)
        self._keep(report, part)

    def inherit(self, reports: Iterable[Report]) -> list[Report]:
        """Take over what an earlier life had still to say; answers it with our own numbers."""
        renumbered = []
        for report in reports:
            self._number += 1
            renumbered.append(msgspec.structs.replace(report, n=self._number))
            self._keep(renumbered[-1], self._part(report))
            self._inherited.add(self._number)
        return renumbered

    def _keep(self, report: Report, part: Part) -> None:
        self._unheard[report.n] = report
        self._reported[report.job] = report.n
        (part.heavy if is_heavy(report) else part.fresh).append(report)

    def progressed(self, job: str, progress: Raw) -> None:
        if (lease := self.running.get(job)) is not None:
            self._part(lease).progress[job] = progress

    def heard(self, numbers: list[int]) -> None:
        """These reports need not be sent again."""
        take, reported, done = self._unheard.pop, self._reported, self._done
        if self._unnamed or self._inherited:
            self._unnamed.difference_update(numbers)
            self._inherited.difference_update(numbers)
        for number in numbers:
            report = take(number, None)
            if report is None:
                continue
            done[report.job] = report.epoch
            if reported.get(report.job) == number:
                del reported[report.job]
        if len(done) >= DONE_MAX:
            self._done, self._done_before = {}, done

    def superseded(self, leases: list[Lease]) -> list[str]:
        """Jobs that run here under a lease older than one of these: that run is lost."""
        held = self.running
        old = [one.job for one in leases if one.job in held and held[one.job].epoch < one.epoch]
        return self._gone(old)

    def lost(self, jobs: Sequence[str], epochs: Sequence[Epoch]) -> list[str]:
        """Those of these jobs that ran here under the lease that is lost, or an older one.

        Replies may overtake each other: a newer lease of the same job may run by now. An older
        server names no epochs; then whatever runs is meant.
        """
        held = self.running
        meant = zip(jobs, epochs, strict=True) if epochs else ((job, NEWEST) for job in jobs)
        old = [job for job, epoch in meant if job in held and held[job].epoch <= epoch]
        return self._gone(old)

    def _gone(self, jobs: Iterable[str]) -> list[str]:
        taken = [self.running.pop(job, None) for job in jobs]
        leases = [lease for lease in taken if lease is not None]
        for lease in leases:
            part = self._part(lease)
            part.running -= 1
        gone = [lease.job for lease in leases]
        if self._spans is not None:
            self._spans.lost(gone)
        return gone

    @property
    def unheard_count(self) -> int:
        return len(self._unheard)

    @property
    def is_settled(self) -> bool:
        return not self.running and not self._unheard

    def take_fresh(self, part: Part | None = None) -> list[Report]:
        part = part or self.whole
        fresh, part.fresh = part.fresh, []
        return fresh

    def take_heavy(self, part: Part | None = None) -> list[Report]:
        part = part or self.whole
        heavy, part.heavy = part.heavy, []
        return heavy

    def take_for_journal(self) -> list[Report]:
        reports, self._for_journal = self._for_journal, []
        return reports

    def take_progress(self, part: Part | None = None) -> list[Holding] | None:
        """News of progress since the last call, as holdings."""
        part = part or self.whole
        news, part.progress = part.progress, {}
        found, part.last_words = part.last_words, []
        found += [
            _holding(self.running[job], progress)
            for job, progress in news.items()
            if job in self.running
        ]
        return found or None

    def with_all_held(self, progress: list[Holding]) -> list[Holding]:
        """News of progress, and whatever else runs or has ended without being heard of.

        A report may take minutes on a slow link; until it is there its lease must stand.
        """
        named = {(one.job, one.epoch) for one in progress}
        held = self._held(self._unnamed | self._inherited)
        return progress + [one for one in held if (one.job, one.epoch) not in named]

    def unheard(self, number: int) -> Report | None:
        return self._unheard.get(number)

    def all_unheard(self, part: Part | None = None) -> Iterable[Report]:
        unheard = self._unheard.values()
        if not self._by_shard or part is None:
            return unheard
        return [report for report in unheard if self._part(report) is part]

    def has_inherited(self, reports: Iterable[Report]) -> bool:
        return bool(self._inherited) and any(one.n in self._inherited for one in reports)

    def replace(self, report: Report) -> None:
        """Something else is to be said of that run."""
        if report.n in self._unheard:
            self._unheard[report.n] = report

    def leave_unnamed(self, reports: Iterable[Report]) -> None:
        """Their leases may be what is refused; a report proves its right by itself."""
        self._unnamed.update(report.n for report in reports)

    def take_unheard(self, part: Part | None = None) -> list[Report]:
        """All reports not heard of, for a resync."""
        said = part or self.whole
        said.fresh, said.heavy, said.last_words = [], [], []
        return list(self.all_unheard(part))

    def running_by_pool(self, part: Part) -> Counter[str]:
        """What runs for one owner, pool by pool."""
        leases = self.running.values()
        return Counter(one.pool for one in leases if self._part(one) is part)

    def everything(self, said: Iterable[Report]) -> list[Holding]:
        """All that is held, for a hello that says these reports.

        The lease of an earlier life is another session's until its report comes along: unless that
        is said now, to name it would only be refused.
        """
        return self._held(self._unnamed | (self._inherited - {report.n for report in said}))

    def _held(self, unnamed: set[int]) -> list[Holding]:
        """All leases but those of these reports; a run that ended is said to have."""
        held = [_holding(lease) for lease in self.running.values()]
        held += [
            _holding(report, ended=True)
            for report in self._unheard.values()
            if report.n not in unnamed
        ]
        return held


def _holding(lease: Lease | Report, progress: Raw = NULL, *, ended: bool = False) -> Holding:
    return Holding(
        job=lease.job,
        tenant=lease.tenant,
        epoch=lease.epoch,
        token=lease.token,
        progress=progress,
        ended=ended,
    )
