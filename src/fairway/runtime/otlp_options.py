"""Whether and what a program sends by OTLP: Fairway's own word, then OpenTelemetry's variables.

`FAIRWAY_OTEL` turns it on. Where to and how is said as everywhere, by `OTEL_*`: endpoint, headers,
timeouts and compression are read by OpenTelemetry's own code; the sampler, the exporters that are
`none`, the interval of metrics, and how long spans and lines gather (OTEL_BSP_SCHEDULE_DELAY,
OTEL_BLRP_SCHEDULE_DELAY) here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from fairway.core.errors import InvalidRequest
from fairway.core.insight.trace_sampling import Sampling

SIGNALS = ("traces", "metrics", "logs")
#: OpenTelemetry's names of samplers: the ratio (None: OTEL_TRACES_SAMPLER_ARG), follows its parent.
SAMPLERS: dict[str, tuple[float | None, bool]] = {
    "always_on": (1.0, False),
    "always_off": (0.0, False),
    "traceidratio": (None, False),
    "parentbased_always_on": (1.0, True),
    "parentbased_always_off": (0.0, True),
    "parentbased_traceidratio": (None, True),
}
METRICS_SECONDS = 60.0
GATHER_SECONDS = 5.0  # spans and lines; a call costs its sender milliseconds, whatever it carries
GATHER_MS_MAX = 86_400_000.0  # a thread that is to wait far longer than one lives ends instead


class OtlpOptions(NamedTuple):
    service: str  # unless OTEL_SERVICE_NAME says otherwise
    instance: str
    sampling: Sampling
    signals: frozenset[str] = frozenset(SIGNALS)
    metrics_seconds: float = METRICS_SECONDS
    spans_seconds: float = GATHER_SECONDS
    lines_seconds: float = GATHER_SECONDS

    @classmethod
    def of(
        cls, environment: Mapping[str, str], service: str, instance: str, sampling: Sampling
    ) -> OtlpOptions | None:
        """None when nothing is to be sent."""
        if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
            return None
        signals = frozenset(
            one for one in SIGNALS if environment.get(f"OTEL_{one.upper()}_EXPORTER") != "none"
        )
        return cls(
            service,
            instance,
            _sampling(environment, sampling),
            signals,
            _seconds(environment, "OTEL_METRIC_EXPORT_INTERVAL", METRICS_SECONDS),
            _seconds(environment, "OTEL_BSP_SCHEDULE_DELAY", GATHER_SECONDS),
            _seconds(environment, "OTEL_BLRP_SCHEDULE_DELAY", GATHER_SECONDS),
        )


def _sampling(environment: Mapping[str, str], ours: Sampling) -> Sampling:
    name = environment.get("OTEL_TRACES_SAMPLER", "").strip().lower()
    if not name:
        return ours
    if name not in SAMPLERS:
        raise InvalidRequest(
            f"OTEL_TRACES_SAMPLER is {name!r}; choose one of {', '.join(SAMPLERS)}."
        )
    ratio, follows_parents = SAMPLERS[name]
    if ratio is None:
        ratio = _number(environment, "OTEL_TRACES_SAMPLER_ARG", 1.0)
    if not 0 <= ratio <= 1:
        raise InvalidRequest(f"OTEL_TRACES_SAMPLER_ARG is {ratio:g}; it must be from 0 to 1.")
    return ours._replace(ratio=ratio, follows_parents=follows_parents)


def _seconds(environment: Mapping[str, str], name: str, default: float) -> float:
    """Of a variable in milliseconds, as OpenTelemetry has them."""
    found_ms = _number(environment, name, default * 1000)
    if not 0 < found_ms <= GATHER_MS_MAX:  # what is no number at all is neither
        raise InvalidRequest(f"{name} must be above zero, and a day at most.")
    return found_ms / 1000


def _number(environment: Mapping[str, str], name: str, default: float) -> float:
    text = environment.get(name, "").strip()
    try:
        return float(text) if text else default
    except ValueError:
        raise InvalidRequest(f"{name} is {text!r}, which is no number.") from None
