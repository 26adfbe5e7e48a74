"""One job of a kind at a time: `@app.job(unique=Unique(within="1h", on_conflict="return"))`."""

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
CONFLICTS = ("reject", "return")

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
        on_conflict: Literal["reject", "return"] = "reject",
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
        if on_conflict not in CONFLICTS:
            raise ValueError(f"Unique(on_conflict=…) is reject or return, not {on_conflict!r}")


class UniqueKey:
    """What a job type says of it, ready to be said of each of its jobs."""

    def __init__(self, job_type: str, function: Callable[..., Any], wanted: Unique | None) -> None:
        self._job_type = job_type
        self._wanted = wanted
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
        )

    def _key_of(self, given: Mapping[str, Any]) -> str:
        if self._key is not None:
            return self._key.of(self._job_type, given)
        plain = msgspec.json.decode(encode_value(given))  # defaults are as they would be sent
        return f"{self._job_type}/{hashlib.blake2b(_encode(plain), digest_size=16).hexdigest()}"
