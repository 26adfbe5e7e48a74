"""`GET /v1/servers`: which servers there are, and who owns how many shards. For operators."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from fairway.api import endpoint_parts as parts
from fairway.api.endpoint import Endpoint, Reply
from fairway.api.http.decoding import json_reply
from fairway.core.insight.servers import ListedServer
from fairway.services.platform import Platform
from fairway.wire.operators.servers import ServerList, ServerView

_EXAMPLE = {
    "name": "83e1a91fca49fe4e",
    "url": "http://10.0.0.5:8080",
    "state": "live",
    "shards": 32,
    "shards_open": 32,
    "newest_term": 7,
    "heartbeat_age_seconds": 0.4,
    "since": "2026-01-31T11:00:00Z",
    "answers": True,
}


@Endpoint(
    "GET /v1/servers",
    keys=("operator",),
    reply=Reply(
        200, "The servers.", ServerList, {"items": [_EXAMPLE], "shards_owned": 32, "shards": 64}
    ),
    problems=parts.QUICK,
)
async def list_servers(request: Request, platform: Platform) -> Response:
    """The servers

    Those that are there, and those that were within the last hour: how many shards each owns, of
    how many it gives jobs out, and how long ago it was heard of. Shards that nobody owns are what
    is missing of all.
    """
    found, answering = await platform.insight.servers.read()
    return json_reply(
        ServerList(
            items=[_view(one, answering) for one in found],
            shards_owned=sum(one.shards for one in found),
            shards=platform.tenant_shards.count,
        )
    )


def _view(one: ListedServer, answering: str) -> ServerView:
    return ServerView(
        name=one.name,
        url=one.url,
        state=one.state,
        shards=one.shards,
        shards_open=one.open_shards,
        newest_term=one.newest_term,
        heartbeat_age_seconds=one.silent_seconds,
        since=one.since,
        answers=one.name == answering,
    )
