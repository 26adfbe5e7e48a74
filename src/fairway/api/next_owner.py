"""Calls that only an owner can answer, and whose owner is gone: they wait for the next one.

An owner whose address refuses connections was not asked anything, so nothing can be done twice by
asking the next. That one comes when the term has run out, and not sooner, unless the owner is known
to be dead: a server that nobody reaches may still grant, by its own clock. So a wait lasts for a
term at most, and few wait: the others hear at once that they should come again. Takes nothing over,
and asks nobody: `relay.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from fairway.core.errors import Unavailable
from fairway.core.ids import ShardId, TenantId, Term
from fairway.runtime.loops import pause
from fairway.services.platform import Platform

TAKE_OVER_SECONDS = 1.0  # from the end of the term until written leases are known to the next
WAIT_SECONDS_MAX = 5.0  # however long a term is
LOOK_SECONDS = 0.05
WAITING_MAX = 100
TENANT_WAITING_MAX = 25

_GONE = (
    "The server that owned these jobs has stopped or is not to be reached, and nothing of this was"
    " done. Another takes over within seconds: send it again then."
)
#: A worker hears it, too, from a server that has just started.
_NOBODY = (
    "No server gives these jobs out just now, as when one has just started; nothing of this was"
    " done. Send it again in a moment."
)


class OwnerGone(Unavailable):
    """Nothing was sent: nobody listens where the owner was, or there is none just now."""

    def __init__(self, url: str | None) -> None:
        self.url = url
        super().__init__(_NOBODY if url is None else _GONE, code="NOT_OWNER")


class NextOwner:
    def __init__(self, platform: Platform, is_elsewhere: Callable[[ShardId], bool]) -> None:
        self._platform = platform
        self._is_elsewhere = is_elsewhere
        wanted_seconds = platform.settings.term_seconds + TAKE_OVER_SECONDS
        self._wait_us = round(min(wanted_seconds, WAIT_SECONDS_MAX) * 1e6)
        self._waiting: Counter[TenantId | None] = Counter()  # None: staff's

    async def after(self, gone: OwnerGone, shard: ShardId, tenant: TenantId | None) -> None:
        """Until somebody else owns the shard, perhaps we; raises `gone` if nobody does in time."""
        if not self._has_room(tenant):
            raise gone
        self._waiting[tenant] += 1
        try:
            clock = self._platform.clock
            ends_us = clock.now_us() + self._wait_us
            term = self._term_of(shard)
            while clock.now_us() < ends_us:
                await pause(LOOK_SECONDS)
                if self._is_settled(shard, gone.url, term):
                    return
        finally:
            self._waiting[tenant] -= 1
            if not self._waiting[tenant]:
                del self._waiting[tenant]
        raise gone

    def _has_room(self, tenant: TenantId | None) -> bool:
        is_of_few = self._waiting[tenant] < TENANT_WAITING_MAX
        return is_of_few and self._waiting.total() < WAITING_MAX

    def _is_settled(self, shard: ShardId, gone_url: str | None, gone_term: Term | None) -> bool:
        if not self._is_elsewhere(shard):
            return self._platform.dispatcher.restored_term_of(shard) is not None
        url = self._platform.ownership.owner_url(shard)
        if url is None:
            return False
        # One that was started again may be the next, at the address that it had.
        return url != gone_url or self._term_of(shard) != gone_term

    def _term_of(self, shard: ShardId) -> Term | None:
        owner = self._platform.ownership.owners.get(shard)
        return None if owner is None else owner.term
