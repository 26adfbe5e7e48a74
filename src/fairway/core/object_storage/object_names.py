"""Names of objects in object storage, and what is known of one from outside it.

A name begins with what it is and the day it was written, so that a sweep can walk by day, and goes
on with whose it is. Nothing here reads or writes: names in, names out.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NamedTuple

from fairway.core.ids import Epoch, TenantId

Kind = Literal["checkpoints", "payloads", "results", "uploads"]

DIGEST_LETTERS = 16  # of the checksum, in a name


class ObjectFacts(NamedTuple):
    """What a row says of the object it refers to."""

    name: str
    size_bytes: int
    sha256: bytes


class Seen(NamedTuple):
    """What lies under a name right now, told apart from what else may come to lie there."""

    size_bytes: int
    version: str  # another one as soon as anybody puts something else there, of any size


class ObjectScope(NamedTuple):
    """Whose an object is."""

    day: str
    tenant: TenantId
    owner: str  # the job's id, or the upload's


def day_of(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d")


def checkpoint_name(scope: ObjectScope, epoch: Epoch, number: int, sha256: bytes) -> str:
    """Carries the epoch: a run that lost its lease can only ever write beside its successor's."""
    leaf = f"{epoch:019d}-{number:06d}-{sha256.hex()[:DIGEST_LETTERS]}"
    return f"checkpoints/{scope.day}/{scope.tenant}/{scope.owner}/{leaf}"


def object_name(kind: Kind, scope: ObjectScope, leaf: str) -> str:
    return f"{kind}/{scope.day}/{scope.tenant}/{scope.owner}/{leaf}"


def owner_of(name: str) -> tuple[TenantId, str]:
    """The tenant and the owner that a name carries."""
    _, _, tenant, owner, _ = name.split("/")
    return TenantId(int(tenant)), owner


def is_intact(facts: ObjectFacts, size_bytes: int, sha256: bytes) -> bool:
    """Whether what was read is what was written."""
    return facts.size_bytes == size_bytes and facts.sha256 == sha256
