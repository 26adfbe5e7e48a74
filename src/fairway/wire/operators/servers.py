"""Servers on the wire, as `api/insight/servers.py` answers them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Struct

from fairway.wire.doc import doc


class ServerView(Struct, kw_only=True):
    """A server."""

    name: Annotated[str, doc("Its name, drawn when it starts.")]
    url: Annotated[str, doc("Where other servers reach it; empty: nowhere.")]
    state: Annotated[
        Literal["live", "standby", "answers_only", "leaving", "standing_in", "gone"],
        doc(
            "live; standby: the processes beside it have time for all shards; answers_only: it"
            " owns no shards by its settings; leaving: it is about to stop;"
            " standing_in: no owner is left, so it gives jobs out itself; gone: its heartbeat has"
            " run out."
        ),
    ]
    shards: Annotated[int, doc("That it owns.")]
    shards_open: Annotated[int, doc("Of these, those whose jobs it gives out.")]
    newest_term: Annotated[
        int | None, doc("The highest term of these: a shard's grows with every owner it has.")
    ]
    heartbeat_age_seconds: Annotated[
        float | None, doc("Since it was last heard; null: a build that has no heartbeat.")
    ]
    since: Annotated[datetime | None, doc("It has been there without a gap since then.")]
    answers: Annotated[bool, doc("It is the one that answers now.")]


class ServerList(Struct, kw_only=True):
    """The servers, those that are there first."""

    items: Annotated[list[ServerView], doc("200 at most.")]
    shards_owned: Annotated[int, doc("By all of them.")]
    shards: Annotated[int, doc("That there are.")]
