"""Acts on many jobs for programs: counted first, begun, followed, aborted.

Refuses moments without a zone and filters that there are none of; whether all jobs are meant when
no filter is given, and which jobs an act is for, the server decides.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, Unpack

from msgspec import Raw

from fairway.sdk.client.handle import blocking_run as run
from fairway.sdk.options import refuse_unknown
from fairway.wire.bulk import NULL, BulkActionView, BulkCount, BulkFilters, BulkRequest
from fairway.wire.messages import encode

if TYPE_CHECKING:
    from fairway.sdk.bulk_calls import BulkCalls
    from fairway.sdk.webhooks import HasClient

Act: TypeAlias = Literal["cancel", "replay", "discard"]


class BulkWhich(TypedDict, total=False):
    """Which jobs: the filters of lists, and a cause; what is left out does not narrow."""

    state: str  # one or more, with commas between
    type: str  # a job type
    pool: str  # a pool
    tag: str  # that it has
    fingerprint: str  # a cause, of dead letters
    since: datetime  # submitted at or after; with its zone
    until: datetime  # submitted before


class Bulk:
    """Acts on many jobs of this tenant, as `app.bulk`. With an `a` in front, each call is one to
    await. `cancel` is for jobs that have not ended, `replay` and `discard` for dead letters."""

    def __init__(self, app: HasClient) -> None:
        self._app = app

    @property
    def _calls(self) -> BulkCalls:
        return self._app.client.bulk

    async def acount(self, act: Act, **which: Unpack[BulkWhich]) -> BulkCount:
        return await self._calls.count(_request(act, which))

    def count(self, act: Act, **which: Unpack[BulkWhich]) -> BulkCount:
        """A dry run: how many match now. Nothing is changed."""
        return run(self.acount(act, **which))

    async def astart(
        self,
        act: Act,
        *,
        all: bool = False,
        per_second: int | None = None,
        payload: Mapping[str, Any] | None = None,
        **which: Unpack[BulkWhich],
    ) -> BulkActionView:
        other = NULL if payload is None else Raw(encode(dict(payload)))
        return await self._calls.start(_request(act, which, all, per_second, other))

    def start(
        self,
        act: Act,
        *,
        all: bool = False,
        per_second: int | None = None,
        payload: Mapping[str, Any] | None = None,
        **which: Unpack[BulkWhich],
    ) -> BulkActionView:
        """Begin it; the platform works it off. Without a filter say `all=True`. Of a replay,
        `payload` goes in place of every job's own. After a lost reply it is not asked for again:
        look at `latest`."""
        work = self.astart(act, all=all, per_second=per_second, payload=payload, **which)
        return run(work)

    async def aget(self, action: str) -> BulkActionView:
        return await self._calls.get(action)

    def get(self, action: str) -> BulkActionView:
        """How far one has come, by its id."""
        return run(self.aget(action))

    async def alatest(self) -> list[BulkActionView]:
        return await self._calls.latest()

    def latest(self) -> list[BulkActionView]:
        """The newest, with their progress."""
        return run(self.alatest())

    def afollow(self, action: str) -> AsyncIterator[BulkActionView]:
        return self._calls.follow(action)

    def follow(self, action: str) -> Iterator[BulkActionView]:
        """As it stands, and again whenever it has come further, until it is over."""
        from fairway.sdk.client.blocking import iterate  # as the client: when it is needed

        return iterate(self.afollow(action))

    async def aabort(self, action: str) -> BulkActionView:
        return await self._calls.abort(action)

    def abort(self, action: str) -> BulkActionView:
        """What is done stays done; nothing further begins."""
        return run(self.aabort(action))


def _request(
    act: Act,
    which: BulkWhich,
    all_: bool = False,
    per_second: int | None = None,
    payload: Raw = NULL,
) -> BulkRequest:
    refuse_unknown(which, BulkWhich, f"app.bulk, {act}")
    texts = {n: _text(v) if isinstance(v, datetime) else v for n, v in which.items()}
    filters = BulkFilters(**texts)  # type: ignore[arg-type]  # texts and moments, by the above
    return BulkRequest(act=act, filter=filters, all=all_, per_second=per_second, payload=payload)


def _text(moment: datetime) -> str:
    if moment.tzinfo is None:
        raise ValueError("a moment needs its zone, as in datetime(2026, 1, 31, tzinfo=UTC)")
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
