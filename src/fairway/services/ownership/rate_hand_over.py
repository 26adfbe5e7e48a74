"""What started of late by keys with a rate, written down by who lets a shard go, for who takes it.

Without it a rate lets nobody in for up to a minute after each change of owner. It is one bounded
row a shard; the next owner goes by it only if it is of the term before its own, so a row that is
older, or that an owner did not live to write, says nothing. A row that cannot be written holds up
no hand-over, and one that cannot be read keeps no shard closed. What counts and what is closed is
decided in `core/backlog/start_rates.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from fairway.core.ids import ShardId, Term
from fairway.runtime.telemetry import logger
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.store import leadership as store
from fairway.store.connections.database import ROLLED_BACK, Connection, Database

log = logger("ownership")


class RateHandOver:
    def __init__(self, database: Database, dispatcher: Dispatcher) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._unwritten: dict[ShardId, store.RateRow] = {}

    def note(self, terms: Mapping[ShardId, Term]) -> None:
        """These are about to be closed: nothing of them starts here any more."""
        saved = self._dispatcher.letting_go().save_starts(terms.keys())
        for shard, windows in saved.items():
            self._unwritten[shard] = store.RateRow(shard, terms[shard], windows)

    async def write(self, connection: Connection) -> None:
        """Before they are let go: under the term in which they were noted."""
        rows, self._unwritten = list(self._unwritten.values()), {}
        if not rows:
            return
        try:
            await store.write_rates(connection, rows)
        except ROLLED_BACK as error:  # somebody holds a row: rates are closed for a while there
            log.warning("what started of late is not handed on", error=repr(error))

    async def take_over(self, shards: Collection[ShardId]) -> None:
        """Before these open: go by what their last owners wrote, where they did."""
        for some in self._database.batches_of(sorted(shards)):
            async with self._database.hot(at=some[0]) as connection:
                found = await store.read_rates(connection, some)
            for row, ago_us in found:
                term = self._dispatcher.term_of(row.shard)
                if term is not None and row.term == term - 1:
                    self._restore(row, ago_us)

    def _restore(self, row: store.RateRow, ago_us: int) -> None:
        """One that cannot be read (of a later build, say) keeps no shard closed: its rates are."""
        try:
            self._dispatcher.letting_go().restore_starts(row.shard, row.windows, ago_us)
        except msgspec.DecodeError as error:
            log.warning("what started of late is not known", shard=row.shard, error=repr(error))
