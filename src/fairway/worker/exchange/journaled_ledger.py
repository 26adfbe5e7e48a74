"""The ledger and its journal together: what is still to be reported survives the process.

Without a journal it is the ledger alone. Jobs that are worth a line in it go by their pool. A
result of megabytes is written beside the loop, because every other job of the worker would wait
for the disk; whoever reports it waits for `written` first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from fairway.runtime.telemetry import logger
from fairway.wire.exchange import Report
from fairway.worker.exchange.failed_runs import FailedRuns
from fairway.worker.exchange.journal import Journal, open_journal
from fairway.worker.exchange.large_results import is_heavy
from fairway.worker.exchange.lease_ledger import LeaseLedger

if TYPE_CHECKING:
    from fairway.worker.exchange.run_spans import RunSpans

log = logger("worker")

JOURNALED_POOLS = frozenset({"medium", "long"})


class JournaledLedger:
    def __init__(
        self,
        folder: Path | None,
        life: str,
        urls: list[str],
        pools: set[str],
        spans: RunSpans | None = None,
    ) -> None:
        is_worth_it = not JOURNALED_POOLS.isdisjoint(pools)
        self._journal = open_journal(folder if is_worth_it else None, life, urls)
        self.failed_runs = FailedRuns()
        self.ledger = LeaseLedger(
            JOURNALED_POOLS if self._journal else (),
            on_failure=self.failed_runs.note,
            spans=spans,
        )
        self._writing: dict[int, asyncio.Task[None]] = {}  # by number of the report

    def note(self) -> None:
        """Runs have ended: before that is reported, it is in the journal."""
        if self._journal is None or not (reports := self.ledger.take_for_journal()):
            return
        light = []
        for report in reports:
            if self.ledger.unheard(report.n) is None:
                continue  # said and heard meanwhile
            if is_heavy(report):  # so it travels by `Reporting`, which waits
                writing = asyncio.create_task(self._write(report, self._journal), name="journal")
                self._writing[report.n] = writing
            else:
                light.append(report)
        self._journal.note(light)

    async def _write(self, report: Report, journal: Journal) -> None:
        try:
            await journal.note_beside(report)
        finally:
            del self._writing[report.n]

    async def written(self, numbers: Iterable[int]) -> None:
        """Until these reports are in the journal, as far as they belong there."""
        writing = [self._writing[n] for n in numbers if n in self._writing]
        if writing:
            await asyncio.wait(writing)  # one that fails has said so, and is reported all the same

    def heard(self, numbers: list[int]) -> None:
        """These reports need not be said again, in this life or the next."""
        self.ledger.heard(numbers)
        if self._journal is not None:
            self._journal.heard(numbers)

    def inherit(self) -> None:
        """Say what an earlier life of a worker here had no time to say."""
        if self._journal is None:
            return
        for left in self._journal.inherit():
            log.info("reporting outcomes of a worker that died", outcomes=len(left.reports))
            self._journal.note(self.ledger.inherit(left.reports))
            left.forget()

    async def close(self) -> None:
        await self.written(list(self._writing))
        if self._journal is not None:
            self._journal.close()
