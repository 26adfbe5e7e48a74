"""What goes to object storage by way of the server: checkpoints, and payloads by upload.

A worker shows its lease with everything it saves. What it may read is decided by its key alone.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta, Raw, Struct

from fairway.wire.doc import doc
from fairway.wire.exchange import Epoch, LeaseToken
from fairway.wire.messages import CheckpointSeen

CheckpointNumber = Annotated[int, Meta(ge=1, le=(1 << 31) - 1)]


class CheckpointSave(Struct, kw_only=True, forbid_unknown_fields=True):
    """Save what the job needs to go on from here. `state` is any JSON."""

    job: Annotated[str, doc("The job.")]
    tenant: Annotated[str, doc("From its lease.")]
    epoch: Annotated[Epoch, doc("From its lease.")]
    token: Annotated[LeaseToken, doc("From its lease.")]
    number: Annotated[CheckpointNumber, doc("Counts the checkpoints of this run, from one.")]
    state: Annotated[Raw, doc("Any JSON: what the next run needs to go on from here.")]


class CheckpointSaved(CheckpointSeen, kw_only=True):
    """The checkpoint is safe: the next run can begin from it."""


class CheckpointFound(CheckpointSeen, kw_only=True):
    """The newest whole checkpoint of the runs before this one."""

    state: Annotated[Raw, doc("What was saved.")]
    lost: Annotated[
        int, doc("How many newer checkpoints were saved and cannot be read any more.")
    ] = 0


class UploadMade(Struct, kw_only=True):
    """Where to PUT a payload that is too large for a request."""

    id: Annotated[str, doc("Submit a job with it as `payload_upload`.")]
    url: Annotated[str, doc("PUT the payload there, as it is, without a key. It is a secret.")]
    expires_at: Annotated[datetime, doc("Until when.")]
    size_bytes_max: Annotated[int, doc("The most that it takes.")]


_BEFORE_STATE = re.compile(rb',\s*"state"\s*:')


def decode_head(begun: bytes) -> CheckpointSave | None:
    """All but the state, from the beginning of a body; None when it does not stand there."""
    found = _BEFORE_STATE.search(begun)
    if found is None:
        return None
    try:
        return decode_save(begun[: found.start()] + b',"state":null}')
    except (ValueError, RecursionError):  # the whole body will be refused in its own words
        return None


decode_save = msgspec.json.Decoder(CheckpointSave).decode
decode_found = msgspec.json.Decoder(CheckpointFound).decode
encode = msgspec.json.Encoder().encode
