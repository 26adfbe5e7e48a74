"""Jobs as they are read from a server's answers."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from fairway.wire.bulk import JobsEnded
from fairway.wire.messages import JobList, JobView

NULL = Raw(b"null")


class ReceivedView(JobView):
    """A view as it is read: raw JSON cannot be told from null on the way in, so null stays raw."""

    progress: Raw = NULL
    result: Raw = NULL
    error: Raw = NULL


class ReceivedEnds(JobsEnded):
    """Several of them."""

    jobs: list[ReceivedView]  # type: ignore[assignment]  # on the wire the same texts


class ReceivedChildren(JobList):
    """A page of such views."""

    jobs: list[ReceivedView]  # type: ignore[assignment]  # on the wire the same texts


decode_view = msgspec.json.Decoder(ReceivedView).decode
decode_ends = msgspec.json.Decoder(ReceivedEnds).decode
decode_children = msgspec.json.Decoder(ReceivedChildren).decode
