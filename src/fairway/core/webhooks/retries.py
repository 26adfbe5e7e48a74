"""What becomes of a delivery after a call: when it is tried again, and when a webhook is given up.

Pure. Chance is handed in as a number from 0 to 1, so that retries of many do not come at once.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from fairway.core.backoff import backoff_seconds
from fairway.core.webhooks.webhook import DeliveryState

MINUTE, HOUR = 60.0, 3600.0
#: Between the tries of one delivery: about three days in all.
PAUSES_SECONDS = (
    5.0, MINUTE, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 18 * HOUR,
    22 * HOUR,
)  # fmt: skip
ATTEMPTS_MAX = len(PAUSES_SECONDS) + 1
JITTER = 0.2  # so much of a pause is added by chance, at most

#: A webhook that fails is asked by one call at a time, and after each rests for longer.
REST_FIRST_SECONDS, REST_MAX_SECONDS = 5.0, 600.0
RETRY_AFTER_MAX_SECONDS = HOUR  # what a receiver may ask for

DISABLED_AFTER = timedelta(days=3)  # without one success
FAILURES_MIN = 5  # in that time: one that is hardly ever called is not judged by two calls

GONE, TOO_MANY = 410, 429


class Answer(NamedTuple):
    """What a call came to: a status, or a sentence on why there is none."""

    status: int | None
    error: str = ""
    retry_after: str = ""  # the header, as it came

    @property
    def is_success(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


class CallVerdict(NamedTuple):
    """What becomes of the delivery."""

    state: DeliveryState
    next_in_seconds: float | None
    error: str


def verdict_of(answer: Answer, attempts: int, chance: float) -> CallVerdict:
    """`attempts` with the one that this is the answer to."""
    if answer.is_success:
        return CallVerdict(DeliveryState.DELIVERED, None, "")
    why = sentence_of(answer)
    pause = None if answer.status == GONE else pause_seconds(attempts, chance)
    state = DeliveryState.FAILED if pause is None else DeliveryState.WAITING
    return CallVerdict(state, pause, why)


def pause_seconds(attempts: int, chance: float) -> float | None:
    """From the last of so many tries to the next; None: there is none."""
    if attempts >= ATTEMPTS_MAX:
        return None
    return PAUSES_SECONDS[max(attempts, 1) - 1] * (1 + JITTER * chance)


def rest_seconds(failures: int, answer: Answer, now: datetime, chance: float) -> float:
    """How long a webhook is left alone after so many failures in a row; 0 after a success."""
    if failures <= 0:
        return 0.0
    own = backoff_seconds(REST_FIRST_SECONDS, failures - 1, REST_MAX_SECONDS)
    asked = retry_after_seconds(answer.retry_after, now)
    return max(own * (1 + JITTER * chance), min(asked, RETRY_AFTER_MAX_SECONDS))


def retry_after_seconds(text: str, now: datetime) -> float:
    """Seconds, or the time of day as HTTP has it; 0 for what is neither."""
    text = text.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        moment = parsedate_to_datetime(text)
        return max((moment - now).total_seconds(), 0.0)
    except (TypeError, ValueError, IndexError, OverflowError):
        return 0.0


def disabled_because(
    answer: Answer, failures: int, failing_since: datetime | None, now: datetime
) -> str:
    """Why a webhook is switched off now, as a sentence; empty: it is not."""
    if answer.status == GONE:
        return "Its receiver answered 410: it is gone for good."
    if failing_since is None or failures < FAILURES_MIN or now - failing_since < DISABLED_AFTER:
        return ""
    days = (now - failing_since).days
    return f"It has failed for {days} days without one success. Last: {sentence_of(answer)}"


def sentence_of(answer: Answer) -> str:
    if answer.status is None:
        return answer.error
    if 300 <= answer.status < 400:
        return f"The receiver answered {answer.status}; redirects are not followed."
    return f"The receiver answered {answer.status}."
