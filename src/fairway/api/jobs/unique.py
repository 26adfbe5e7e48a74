"""From the word about uniqueness in a request to what a submission claims."""

from __future__ import annotations

from collections.abc import Iterable

from fairway.core.errors import InvalidRequest
from fairway.core.lifecycle import BY_LABEL
from fairway.core.unique import WHILE_WAITING, UniqueWish, digest_of, states_of
from fairway.services.submit.submission_group import NewJob
from fairway.wire.unique import WHILE_LIVE, UniqueRequest


def unique_wish(request: UniqueRequest) -> UniqueWish:
    states = WHILE_LIVE if request.while_states is None else request.while_states
    if not states:
        raise InvalidRequest("Name at least one state.", field="/unique/while_states")
    bits = states_of(BY_LABEL[label] for label in states)
    replaces, most = request.on_conflict == "replace", request.delay_most_seconds
    if replaces and not bits & WHILE_WAITING:
        raise InvalidRequest(
            "Only jobs that wait are replaced: name `scheduled` or `queued`.",
            field="/unique/while_states",
        )
    if most is not None and not replaces:
        raise InvalidRequest(
            "Only jobs that replace others are put off again and again: this needs"
            " `on_conflict` to be `replace`.",
            field="/unique/delay_most_seconds",
        )
    return UniqueWish(
        digest_of(request.key),
        bits,
        round(request.within_seconds * 1000),
        returns=request.on_conflict == "return",
        replaces=replaces,
        delay_most_ms=None if most is None else round(most * 1000),
    )


def replaces_others(wanted: Iterable[NewJob]) -> bool:
    """Whether any may take the place of another job, which only the owner of those does."""
    return any(new.unique is not None and new.unique.replaces for new in wanted)
