"""Workers that serve several owners: what they offer, what they are told, and calls passed on.

A worker names the owner that it means (`?owner=`): whichever server it reached passes the call on,
once and only to a server that owns something now. Without a name any owner does.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import parse_qs

from msgspec.structs import replace

from fairway.api.http.asgi import Scope, Send
from fairway.api.http.headers import header
from fairway.api.relay import RELAYED, Relay
from fairway.core.errors import Unavailable
from fairway.core.ids import PoolId
from fairway.core.pools import PoolTable
from fairway.services.platform import Platform
from fairway.services.sessions.offers import Offer
from fairway.services.workers.offer_answers import answer_to_offer
from fairway.services.workers.owner_list import OwnerList
from fairway.wire import exchange as wire


async def is_passed_on(relay: Relay, own_url: str, scope: Scope, body: bytes, send: Send) -> bool:
    """Whether another server has answered."""
    owner = _named_owner(scope["query_string"]) if scope["query_string"] else None
    if owner is not None and owner != own_url:
        await relay.pass_on(scope, body, send, shard=None, owner=owner)
        return True
    if not relay.is_elsewhere(None):
        return False
    if owner is not None:
        raise Unavailable(code="NOT_OWNER")  # it was: its worker learns who is
    try:
        await relay.pass_on(scope, body, send, shard=None)
        return True
    except Unavailable:
        if relay.is_elsewhere(None):
            raise
        return False  # this server took over while it waited for the other


@lru_cache(maxsize=64)  # a worker's exchanges all say the same
def _named_owner(query_string: bytes) -> str | None:
    named = parse_qs(query_string.decode("latin-1")).get("owner")
    return named[0] if named else None


def offer_of(pools: PoolTable, said: wire.SlotOffer | None) -> Offer | None:
    if said is None:
        return None
    return Offer(_by_number(pools, said.slots), _by_number(pools, said.elsewhere), said.is_counted)


def _by_number(pools: PoolTable, named: Mapping[str, int]) -> dict[PoolId, int]:
    """Of pools that are there: of others its hello was told."""
    known = pools.by_name
    return {known[name].number: slots for name, slots in named.items() if name in known}


class OwnerWords:
    """What a reply says beside the news, to a worker that asks for it."""

    def __init__(self, platform: Platform) -> None:
        self._dispatcher = platform.dispatcher
        self._pools = platform.registry.pools
        self._owners = OwnerList(lambda: platform.ownership.owners)

    def told(
        self, scope: Scope, request: wire.ExchangeRequest, reply: wire.ExchangeReply
    ) -> wire.ExchangeReply:
        is_passed_on = header(scope, RELAYED) is not None
        news = self._owners.news(request.owners, is_passed_on=is_passed_on)
        if news is not None:
            shards = news.shards.items()
            owners = [wire.OwnerAt(url=url, shards=list(owned)) for url, owned in shards]
            reply = replace(reply, owners=owners, owners_version=news.version)
        if request.offer is None or reply.resync:
            return reply
        return self._with_answer(request.session, reply)

    def _with_answer(self, session: str, reply: wire.ExchangeReply) -> wire.ExchangeReply:
        answer, names = answer_to_offer(self._dispatcher, session), self._pools.by_number
        if answer is None:
            return reply
        in_use = {names[pool].name: used for pool, used in answer.in_use.items()}
        waiting = {names[pool].name: weight for pool, weight in answer.waiting.items()}
        return replace(reply, in_use=in_use, waiting=waiting)
