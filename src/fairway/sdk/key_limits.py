"""What a job waits for beside a slot: `concurrency=Limit("customer", 3)`, `rate=Rate(10, "1s")`.

A key names what is counted together, among all jobs of the tenant:

- none, `Limit(5)`: all jobs of this type;
- the name of an argument, `Limit("customer", 3)`: jobs of this type with the same value there;
- a template, `Limit("crm-{customer}", 3)`: jobs whose templates give the same text, of any type.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

import msgspec

from fairway.core.backlog.key_limits import KEY_CHARACTERS_MAX, LIMITS_PER_JOB
from fairway.sdk.durations import Duration, seconds_of
from fairway.sdk.handler.codec import InvalidArguments, encode_value
from fairway.wire.key_limits import AT_MOST_MAX, PER_SECONDS_MAX, PER_SECONDS_MIN, JobLimit

_NAMES = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class JobKey:
    """What is counted together, said once for a job type."""

    def __init__(self, text: str | None) -> None:
        self._text = text

    @property
    def arguments(self) -> list[str]:
        """Names of the arguments that it is made of."""
        if self._text is None:
            return []
        return _NAMES.findall(self._text) if "{" in self._text else [self._text]

    def of(self, job_type: str, given: Mapping[str, Any]) -> str:
        if self._text is None:
            return job_type
        if "{" in self._text:
            key = _NAMES.sub(lambda found: _shown(given[found[1]]), self._text)
        else:
            key = f"{job_type}/{self._text}={_shown(given[self._text])}"
        if not 0 < len(key) <= KEY_CHARACTERS_MAX:
            raise InvalidArguments(
                f"{job_type}(): the key of a limit is 1 to {KEY_CHARACTERS_MAX} characters; these"
                f" arguments give {len(key)}",
                field="/limits",
            )
        return key

    def __repr__(self) -> str:
        return repr(self._text)


class Limit:
    """So many runs at once: of the job type, or of a key."""

    @overload
    def __init__(self, n: int, /) -> None: ...
    @overload
    def __init__(self, key: str, n: int, /) -> None: ...
    def __init__(self, *given: str | int) -> None:
        self.key, self.most = _key_and_count("Limit", given)

    def wanted(self, job_type: str, given: Mapping[str, Any]) -> JobLimit:
        return JobLimit(key=self.key.of(job_type, given), at_most=self.most)

    def __repr__(self) -> str:
        return f"Limit({self.key!r}, {self.most})"


class Rate:
    """So many starts in any while: of the job type, or of a key. `Rate("customer", 10, "1m")`."""

    @overload
    def __init__(self, n: int, per: Duration, /) -> None: ...
    @overload
    def __init__(self, key: str, n: int, per: Duration, /) -> None: ...
    def __init__(self, *given: Any) -> None:
        if len(given) not in (2, 3):
            raise ValueError("a Rate is Rate(n, per) or Rate(key, n, per)")
        self.key, self.most = _key_and_count("Rate", given[:-1])
        self.per_seconds = seconds_of(given[-1])
        if not PER_SECONDS_MIN <= self.per_seconds <= PER_SECONDS_MAX:
            raise ValueError(f"a Rate is per 0.1 seconds to a day, not {given[-1]!r}")

    def wanted(self, job_type: str, given: Mapping[str, Any]) -> JobLimit:
        key = self.key.of(job_type, given)
        return JobLimit(key=key, count=self.most, per_seconds=self.per_seconds)

    def __repr__(self) -> str:
        return f"Rate({self.key!r}, {self.most}, {self.per_seconds:g} s)"


def _key_and_count(kind: str, given: Sequence[str | int]) -> tuple[JobKey, int]:
    key, most = given if len(given) == 2 else (None, given[0] if given else None)
    if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= AT_MOST_MAX:
        raise ValueError(f"a {kind} is of 1 to {AT_MOST_MAX}, not {most!r}")
    if len(given) == 2 and not (isinstance(key, str) and key):
        raise ValueError(f"the key of a {kind} is an argument's name or a template, not {key!r}")
    return JobKey(key), most  # type: ignore[arg-type]  # a text, by now


class KeyLimits:
    """All limits of one job type."""

    def __init__(
        self,
        job_type: str,
        function: Callable[..., Any],
        *given: Limit | Rate | list[Limit] | list[Rate] | None,
    ) -> None:
        self._job_type = job_type
        self._limits: list[Limit | Rate] = []
        for some in given:
            self._limits += some if isinstance(some, list) else [some] if some else []
        if len(self._limits) > LIMITS_PER_JOB:
            raise ValueError(f"{job_type}: a job has at most {LIMITS_PER_JOB} limits")
        self._defaults = self._checked_defaults(inspect.signature(function).parameters)

    def _checked_defaults(self, parameters: Mapping[str, inspect.Parameter]) -> dict[str, Any]:
        """Of the arguments that keys are made of; ValueError for one that there is not."""
        for limit in self._limits:
            for name in limit.key.arguments:
                if name not in parameters:
                    raise ValueError(
                        f"{self._job_type}: {limit} names {name!r}, which is no argument"
                    )
        return {
            name: each.default
            for name, each in parameters.items()
            if each.default is not each.empty
        }

    def of(self, payload: bytes, later: str = "") -> list[JobLimit] | None:
        """As they go over the wire, for a job with these arguments; None: it has none.

        `later` is an argument that comes when the job before it has ended: no key is made of that.
        """
        if not self._limits:
            return None
        for limit in self._limits:
            if later in limit.key.arguments:
                raise InvalidArguments(
                    f"{self._job_type}(): {limit} is by {later!r}, which is the result of the job"
                    " before it in the chain, and not known yet; make its key of another argument",
                    field="/limits",
                )
        given = self._defaults | _decode(payload)
        return [limit.wanted(self._job_type, given) for limit in self._limits]


def _shown(value: Any) -> str:
    """A text as it is, anything else as its JSON."""
    return value if isinstance(value, str) else encode_value(value).decode()
