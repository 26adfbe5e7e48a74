"""The ledger and its journal together: what is still to be reported survives the process.

Without a journal it is the ledger alone. Jobs that are worth a line in it go by their pool.
"""

from __future__ import annotations

from pathlib import Path

from fairway.runtime.telemetry import logger
from fairway.worker.failure_lines import FailureLines
from fairway.worker.journal import open_journal
from fairway.worker.ledger import Ledger

log = logger("worker")

JOURNALED_POOLS = frozenset({"medium", "long"})


class Bookkeeping:
    def __init__(self, folder: Path | None, life: str, urls: list[str], pools: set[str]) -> None:
        is_worth_it = not JOURNALED_POOLS.isdisjoint(pools)
        self._journal = open_journal(folder if is_worth_it else None, life, urls)
        self.ledger = Ledger(JOURNALED_POOLS if self._journal else ())
        self.ledger.on_failure = FailureLines().tell

    def note(self) -> None:
        """Runs have ended: before that is reported, it is in the journal."""
        if self._journal is not None and (reports := self.ledger.take_for_journal()):
            self._journal.note(reports)

    def heard(self, numbers: list[int]) -> None:
        """These reports need not be said again, in this life or the next."""
        self.ledger.heard(numbers)
        if self._journal is not None:
            self._journal.heard(numbers)

    def inherit(self) -> None:
        """Say what an earlier life of a worker here had no time to say."""
        if self._journal is not None and (reports := self._journal.inherit()):
            log.info("reporting outcomes of a worker that died", outcomes=len(reports))
            self._journal.note(self.ledger.inherit(reports))

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()
