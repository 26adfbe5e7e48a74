"""Tokens of leases: each proves that a server of this cluster granted that job under that epoch.

A token is a MAC of job and epoch under the cluster's secret, so who was not given a lease cannot
name it, and any server of the cluster knows a real one without having seen it: also one that an
owner granted and died before it wrote it down, and one whose end is on disk, where no token is
left. Its first digits are the life of the server that made it. So two grants of the same epoch
differ, should there ever be two: after a restore from a backup, say.
"""

from __future__ import annotations

import hmac
from hashlib import blake2s, sha256

from fairway.core.ids import NO_EPOCH, Epoch

LIFE_DIGITS = 8
MAC_BYTES = 12


class LeaseTokens:
    """Makes the tokens of one life of one server; knows those of all of its cluster."""

    def __init__(self, secret: str, life: str) -> None:
        assert len(life) == LIFE_DIGITS
        self._key = sha256(b"lease tokens\0" + secret.encode()).digest()
        self._life = life
        self._epoch = NO_EPOCH
        self._begun = self._begin(life, NO_EPOCH)

    def make(self, job: str, epoch: Epoch) -> str:
        """Most grants in a row are of one epoch: what is common to them is reckoned once."""
        if epoch != self._epoch:
            self._epoch, self._begun = epoch, self._begin(self._life, epoch)
        mac = self._begun.copy()
        mac.update(job.encode())
        return self._life + mac.hexdigest()

    def is_real(self, job: str, epoch: Epoch, token: str) -> bool:
        """Whether a server of this cluster gave out this token for that lease."""
        life = token[:LIFE_DIGITS]
        mac = self._begin(life, epoch)
        mac.update(_bytes(job))
        return hmac.compare_digest(_bytes(life + mac.hexdigest()), _bytes(token))

    def _begin(self, life: str, epoch: Epoch) -> blake2s:
        return blake2s(_bytes(f"{life}.{epoch}."), key=self._key, digest_size=MAC_BYTES)


def _bytes(text: str) -> bytes:
    return text.encode(errors="replace")  # whatever somebody says is a token: it is to be refused
