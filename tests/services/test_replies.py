"""What one reply to a worker carries."""

from __future__ import annotations

import pytest
from tests.core.backlog.test_backlog import make

from fairway.core.ids import Epoch
from fairway.core.pools import PoolTable
from fairway.runtime.clock import SystemClock
from fairway.services.sessions.session_table import FEW_LEASES, REPLY_BYTES, SessionTable
from fairway.services.sessions.sessions import Lease


@pytest.mark.parametrize(("size", "first"), [(60_000, REPLY_BYTES // 60_000), (10, 100)])
def test_a_heavy_reply_is_cut_and_the_rest_comes_next(size: int, first: int) -> None:
    """It is encoded in one go; nothing is left out, and the order stays."""
    book, count = SessionTable(SystemClock(), PoolTable(), 30_000_000), FEW_LEASES + 36
    session = book.heard("a" * 32, "worker", None)
    for number in range(count):
        lease = Lease(make(number, size=size), Epoch(1), "token", session, 0)
        session.leases[lease.job.id] = lease
        session.outbox.append(lease)
    wanted, heard = list(session.outbox), list[Lease]()
    news = book.news(session)
    assert (len(news.leases), news.more) == (first, first < count)
    heard += news.leases
    heard += book.news(session).leases
    assert heard == wanted
    assert not session.outbox
