"""What goes to object storage by way of the server: checkpoints, and payloads by upload.

A worker shows its lease with everything it saves. What it may read is decided by its key alone.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta, Raw, Struct

from fairway.wire.exchange import Epoch, LeaseToken

CheckpointNumber = Annotated[int, Meta(ge=1, le=(1 << 31) - 1)]


class CheckpointSave(Struct, kw_only=True, forbid_unknown_fields=True):
    """Save what the job needs to go on from here. `state` is any JSON."""

    job: str
    tenant: str
    epoch: Epoch
    token: LeaseToken
    number: CheckpointNumber
    state: Raw


class CheckpointSaved(Struct, kw_only=True):
    """The checkpoint is safe: the next run can begin from it."""

    number: int
    size_bytes: int
    saved_at: datetime


class CheckpointFound(Struct, kw_only=True):
    """The newest whole checkpoint of the runs before this one."""

    number: int
    size_bytes: int
    saved_at: datetime
    state: Raw
    lost: int = 0


class UploadMade(Struct, kw_only=True):
    """Where to PUT a payload that is too large for a request."""

    id: str
    url: str
    expires_at: datetime
    size_bytes_max: int


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
