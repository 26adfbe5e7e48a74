"""One job of a kind at a time: `@app.job(unique=Unique(within="1h", on_conflict="return"))`.

And the last of many in a while: `@app.job(debounce=Debounce("10s", by="customer", most="1m"))`.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, get_args

import msgspec

from fairway.core.unique import WITHIN_MS_MAX
from fairway.sdk.durations import Duration, seconds_of
from fairway.sdk.handler.codec import encode_value
from fairway.sdk.key_limits import JobKey
from fairway.wire.unique import WHILE_LIVE, UniqueRequest, WhileState

ARGUMENTS = "args"  # all of them together, in place of a key
OnConflict = Literal["reject", "return", "replace"]
DAY_SECONDS = 24 * 3600

_encode = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Unique:
    """By all arguments, by one (`by="customer"`) or by a template (`by="crm-{customer}"`)."""

    def __init__(
        self,
        *,
        by: str = ARGUMENTS,
        within: Duration = "1d",
        while_: Iterable[WhileState] = WHILE_LIVE,
        on_conflict: OnConflict = "reject",
    ) -> None:
        self.by = by
        self.within_seconds = seconds_of(within)
        self.while_states = list(while_)
        self.on_conflict = on_conflict
        if not 1 <= self.within_seconds <= WITHIN_MS_MAX / 1000:
            raise ValueError(f"Unique(within=…) is a second to 30 days, not {within!r}")
        known = get_args(WhileState)
        if not self.while_states or set(self.while_states) - set(known):
            raise ValueError(f"Unique(while_=…) names some of {', '.join(known)}")
        if on_conflict not in get_args(OnConflict):
            raise ValueError(
                f"Unique(on_conflict=…) is reject, return or replace, not {on_conflict!r}"
            )
        if on_conflict == "replace" and not {"scheduled", "queued"} & set(self.while_states):
            raise ValueError(
                "Unique(on_conflict='replace') replaces jobs that wait: while_ must have"
                " scheduled or queued"
            )


class Debounce:
    """A job runs when no other of its kind has come for so long; each takes the last one's place.

    `by` is as for Unique: all arguments, one, or a template. However many come, one runs at the
    latest after `most`, counted from the first.
    """

    def __init__(
        self, delay: Duration, *, by: str = ARGUMENTS, most: Duration | None = None
    ) -> None:
        self.delay_seconds = seconds_of(delay)
        self.by = by
        self.most_seconds = None if most is None else seconds_of(most)
        if not 0 < self.delay_seconds <= DAY_SECONDS:
            raise ValueError(f"Debounce(…) is longer than nothing, a day at most, not {delay!r}")
        if self.most_seconds is not None and self.most_seconds < self.delay_seconds:
            raise ValueError(f"Debounce(most=…) is no shorter than its delay, not {most!r}")
        if self.most_seconds is not None and self.most_seconds > DAY_SECONDS:
            raise ValueError(f"Debounce(most=…) is a day at most, not {most!r}")

    @property
    def unique(self) -> Unique:
        """What it is to a server, beside a delay. One that is due is left to run."""
        within = self.delay_seconds + DAY_SECONDS
        return Unique(by=self.by, within=within, while_=["scheduled"], on_conflict="replace")


class UniqueKey:
    """What a job type says of it, ready to be said of each of its jobs."""

    def __init__(
        self,
        job_type: str,
        function: Callable[..., Any],
        wanted: Unique | None,
        debounce: Debounce | Duration | None = None,
    ) -> None:
        if wanted is not None and debounce is not None:
            raise ValueError(f"{job_type}: give either unique= or debounce=, not both")
        if debounce is not None and not isinstance(debounce, Debounce):
            debounce = Debounce(debounce)
        wanted = wanted if debounce is None else debounce.unique
        self._job_type = job_type
        self._wanted = wanted
        self.delay_seconds = None if debounce is None else debounce.delay_seconds
        self._most_seconds = None if debounce is None else debounce.most_seconds
        parameters = inspect.signature(function).parameters
        self._key = None if wanted is None or wanted.by == ARGUMENTS else JobKey(wanted.by)
        for name in self._key.arguments if self._key else ():
            if name not in parameters:
                raise ValueError(f"{job_type}: Unique(by=…) names {name!r}, which is no argument")
        self._defaults = {
            name: each.default
            for name, each in parameters.items()
            if each.default is not each.empty
        }

    @property
    def is_wanted(self) -> bool:
        return self._wanted is not None

    def of(self, payload: bytes) -> UniqueRequest | None:
        """As it goes over the wire, for a job with these arguments; None: it need not be."""
        wanted = self._wanted
        if wanted is None:
            return None
        return UniqueRequest(
            key=self._key_of(self._defaults | _decode(payload)),
            within_seconds=wanted.within_seconds,
            while_states=wanted.while_states,
            on_conflict=wanted.on_conflict,
            delay_most_seconds=self._most_seconds,
        )

    def _key_of(self, given: Mapping[str, Any]) -> str:
        if self._key is not None:
            return self._key.of(self._job_type, given)
        plain = msgspec.json.decode(encode_value(given))  # defaults are as they would be sent
        return f"{self._job_type}/{hashlib.blake2b(_encode(plain), digest_size=16).hexdigest()}"
