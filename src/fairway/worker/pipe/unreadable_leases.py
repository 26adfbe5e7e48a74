"""Orders that cannot be read: the leases in them that can be are run, the others fail.

A keeper writes no such thing. Should it come about all the same, be it by a defect, one lease must
not cost its runner, and no job may be forgotten: somebody waits for every lease that was sent.
"""

from __future__ import annotations

import re

import msgspec
from msgspec import Raw, Struct

from fairway.core.ids import Epoch
from fairway.worker.pipe.pipe import KeeperMessage, RunLease, RunReport
from fairway.worker.pipe.run_messages import unreadable

_HEAD = re.compile(rb'"job":"([0-9a-f-]{36})","epoch":([0-9]{1,19})[,}]')


class _Apart(Struct):
    """Orders of which only the leases are taken, each by itself."""

    leases: list[Raw] = []


_decode = msgspec.json.Decoder(_Apart).decode
_decode_lease = msgspec.json.Decoder(RunLease).decode


def readable_in(text: bytes, error: Exception) -> tuple[KeeperMessage, list[RunReport]]:
    """What can be made of a frame's text: orders, and how those jobs ended that never began."""
    try:
        texts, heads = [bytes(one) for one in _decode(text).leases], 1
    except (ValueError, RecursionError):
        texts, heads = [text], None  # however many there are
    leases, ended = [], {}
    for one in texts:
        try:
            leases.append(_lease(one, error))
        except (ValueError, RecursionError) as why:
            for job, epoch in _HEAD.findall(one)[:heads]:
                ended[job] = unreadable(
                    job.decode(), Epoch(int(epoch)), f"Its orders are no good: {why}"
                )
    started = {lease.job.encode() for lease in leases}
    return KeeperMessage(leases=leases), [one for job, one in ended.items() if job not in started]


def _lease(text: bytes, error: Exception) -> RunLease:
    text.decode()
    lease = _decode_lease(text)
    if lease.beside is not None:  # what was beside the text is no good, or is not there
        raise ValueError(str(error))
    return lease
