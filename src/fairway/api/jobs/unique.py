"""From the word about uniqueness in a request to what a submission claims."""

from __future__ import annotations

from fairway.core.errors import InvalidRequest
from fairway.core.lifecycle import BY_LABEL
from fairway.core.unique import UniqueWish, digest_of, states_of
from fairway.wire.unique import WHILE_LIVE, UniqueRequest


def unique_wish(request: UniqueRequest) -> UniqueWish:
    states = WHILE_LIVE if request.while_states is None else request.while_states
    if not states:
        raise InvalidRequest("Name at least one state.", field="/unique/while_states")
    return UniqueWish(
        digest_of(request.key),
        states_of(BY_LABEL[label] for label in states),
        round(request.within_seconds * 1000),
        returns=request.on_conflict == "return",
    )
