"""Whether a worker is of use yet: it is when a server has taken its first hello, not before.

Until then each failed call says why it is not, in a sentence, and what happens next.
"""

from __future__ import annotations

from fairway.core.errors import FairwayError
from fairway.runtime.telemetry import logger

log = logger("worker")


class Readiness:
    def __init__(self, name: str) -> None:
        self._name = name
        self.is_ready = False

    def greeted(self, types: list[str], limits: dict[str, str]) -> None:
        if not self.is_ready:
            log.info("worker ready", name=self._name, types=types)
            log.info("limits are held by", **limits)
        self.is_ready = True

    def failed(self, error: FairwayError, seconds: float) -> None:
        event = "exchange failed" if self.is_ready else "worker is not ready"
        log.warning(event, error=error.message, retry_in_seconds=round(seconds, 2))
