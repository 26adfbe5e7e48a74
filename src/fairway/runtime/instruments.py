"""The instruments of one program, as its settings want them: metrics, and OTLP where it is on.

OpenTelemetry is loaded only there.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fairway.core.errors import InvalidRequest
from fairway.core.insight.trace_sampling import Sampling
from fairway.runtime.clock import Clock
from fairway.runtime.otlp_options import OtlpOptions
from fairway.runtime.settings import WORDS_OF_TRUTH, Settings
from fairway.runtime.telemetry import Instruments, Metrics

if TYPE_CHECKING:
    from fairway.runtime.otlp import Otlp

ON = "FAIRWAY_OTEL"
NEVER = Sampling(0.0)  # a worker makes spans of what was sampled when it was accepted


def of_server(settings: Settings, clock: Clock) -> Instruments:
    metrics, options = Metrics(), None
    if settings.otel:
        name = f"{socket.gethostname()}-{os.getpid()}"
        sampling = Sampling(settings.otel_trace_ratio, per_second=settings.otel_traces_per_second)
        options = OtlpOptions.of(os.environ, "fairway-server", name, sampling)
    return Instruments(clock, metrics, _opened(options, metrics.registries, metrics.drop_otlp))


def of_worker(environment: Mapping[str, str], name: str) -> Otlp | None:
    """What it sends: spans of runs, and its log. It counts nothing: servers do."""
    said = environment.get(ON, "").lower()
    if said and said not in WORDS_OF_TRUTH:
        raise InvalidRequest(f"{ON} is {said!r}, which is neither true nor false.")
    if not (said and WORDS_OF_TRUTH[said]):
        return None
    options = OtlpOptions.of(environment, "fairway-worker", name, NEVER)
    return _opened(options, (), lambda signal, count: None)


def steps_of(instruments: Instruments) -> dict[str, Callable[[int], Awaitable[float]]]:
    return {} if instruments.otlp is None else instruments.otlp.steps()


def _opened(
    options: OtlpOptions | None, registries: Sequence[Any], dropped: Callable[[str, int], None]
) -> Otlp | None:
    """Begin to send; `dropped` is told by signal how much was not."""
    if options is None or not options.signals:
        return None
    try:
        from fairway.runtime.otlp import Otlp
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("opentelemetry"):
            raise
        raise InvalidRequest(
            "FAIRWAY_OTEL is true, and OpenTelemetry is not installed: pip install 'fairway[otel]'."
        ) from None
    return Otlp(options, registries, dropped)


async def close(otlp: Otlp | None) -> None:
    """Send what waits, for a moment."""
    if otlp is not None:
        await otlp.close()
