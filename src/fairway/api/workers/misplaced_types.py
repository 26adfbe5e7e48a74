"""Types of a hello that are for pools which are not there: named, and the others run.

A pool may come later: the worker says hello again now and then.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from fairway.wire.exchange import ExchangeReply, ExchangeRequest


def why_misplaced(request: ExchangeRequest, pools: Collection[str]) -> dict[str, str]:
    """Type → a sentence; none in most calls."""
    types = request.hello.types if request.hello is not None else []
    return {
        one.name: f"It is for the pool {one.pool[:64]!r}; there are {', '.join(pools)}."
        for one in types
        if one.pool is not None and one.pool not in pools
    }


def without(request: ExchangeRequest, misplaced: Collection[str]) -> ExchangeRequest:
    if not misplaced or request.hello is None:
        return request
    types = [one for one in request.hello.types if one.name not in misplaced]
    return replace(request, hello=replace(request.hello, types=types))


def told(reply: ExchangeReply, misplaced: dict[str, str]) -> ExchangeReply:
    if not misplaced:
        return reply
    refused = [*reply.refused_types, *misplaced]
    return replace(reply, refused_types=refused, refused_why=misplaced)
