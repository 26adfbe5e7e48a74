"""One set of metrics for several server processes: whichever is asked answers for all of them.

It asks its siblings at their own addresses, for a second at most, and adds up
(`core/insight/merged_metrics.py`). What each has counted is kept where it outlives that process: of
one that does not answer, and of lives that are over, the counts are told, and what held at some
moment is not. Figures that are asked for by name are told and not kept: programs ask for them
often, and all of them take milliseconds of every process. Who is alone has none of this.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, generate_latest

from fairway.api.operators.health import MetricsText
from fairway.api.operators.kept_text import TEXT_BYTES_MAX, read_text, write_text
from fairway.api.peers import Peers, cluster_lines
from fairway.core.insight.merged_metrics import counts_of, merged, restricted
from fairway.core.server_processes import ProcessGroup
from fairway.runtime.telemetry import Metrics, logger

log = logger("metrics")

METRICS_PATH = "/internal/metrics"
ASK_SECONDS_MAX = 1.0
MERGED_SECONDS = 0.5  # anybody may ask, as often as they like: it takes some milliseconds
NAMED_MAX = 4  # questions for some of them at a time; more are answered from all of them
NAMED_REST_SECONDS = 0.1  # of each such place, after its answer: each asks every process
UP = "fairway_server_process_up"


class Parts(NamedTuple):
    """What everybody may hear, and what names job types."""

    plain: str
    by_type: str

    @classmethod
    def of(cls, text: bytes) -> Parts:
        plain, _, by_type = text.partition(b"\0")
        return cls(plain.decode(), by_type.decode())

    def text(self) -> bytes:
        return f"{self.plain}\0{self.by_type}".encode()


class ProcessMetrics:
    def __init__(self, metrics: Metrics, group: ProcessGroup, peers: Peers, secret: str) -> None:
        self._own = MetricsText(metrics)
        self._group = group
        self._peers = peers
        self._lines = cluster_lines(secret)
        self._registry = CollectorRegistry()
        self._silent = Counter(
            "fairway_server_process_silent_total",
            "Times that a server process did not say its metrics; its counts were those of before.",
            ["process"],
            registry=self._registry,
        )
        for number in group.siblings:
            self._silent.labels(str(number))
        self._before = Parts.of(read_text(self._descriptor(group.number)))  # of former lives
        self._asking: asyncio.Task[Parts] | None = None
        self._good_until = 0.0
        self._asked_for: dict[frozenset[str], asyncio.Task[Parts]] = {}
        self._places = NAMED_MAX

    async def now(self, *, names_types: bool, only: Collection[str] = ()) -> bytes:
        """Of all processes."""
        if not only:
            return self._text(await asyncio.shield(self._all()), names_types)
        names = frozenset(filter(str.isidentifier, only))  # no other is a figure's
        asking = self._asked_for.get(names)
        if asking is None and self._places and names:
            asking = asyncio.create_task(self._ask_for(names), name="metrics")
            self._asked_for[names] = asking
            self._places -= 1
            asking.add_done_callback(lambda _: self._was_asked(names))
        found = await asyncio.shield(asking or self._all())
        return restricted(self._text(found, names_types).decode(), names).encode()

    def _was_asked(self, names: frozenset[str]) -> None:
        del self._asked_for[names]
        asyncio.get_running_loop().call_later(NAMED_REST_SECONDS, self._has_rested)

    def _has_rested(self) -> None:
        self._places += 1

    def _all(self) -> asyncio.Task[Parts]:
        """A moment old at most; whoever leaves takes nobody's answer along."""
        now = asyncio.get_running_loop().time()
        if self._asking is None or (self._asking.done() and now >= self._good_until):
            self._asking = asyncio.create_task(self._ask_all(), name="metrics")
            self._good_until = now + MERGED_SECONDS
        return self._asking

    @staticmethod
    def _text(found: Parts, names_types: bool) -> bytes:
        return "".join(found if names_types else found[:1]).encode()

    def told(self, names: bytes) -> bytes:
        """Of this process, for a sibling: what has these names, or all. All that is told is kept,
        so that no later life says less."""
        only = names.decode().split()
        text = (self._named(only) if only else self._keep()).text()
        return text if len(text) <= TEXT_BYTES_MAX else b""

    def close(self) -> None:
        self._keep()

    def _keep(self) -> Parts:
        own = self._local()
        counts = Parts(*map(counts_of, own))
        write_text(self._descriptor(self._group.number), counts.text())
        return own

    def _descriptor(self, number: int) -> int:
        return self._group.counts_fds[number - 1]

    def _local(self) -> Parts:
        plain, by_type = (text.decode() for text in self._own.parts())
        plain += generate_latest(self._registry).decode()
        before = self._before
        return Parts(merged((plain, before.plain)), merged((by_type, before.by_type)))

    def _named(self, only: Collection[str]) -> Parts:
        plain, by_type = (text.decode() for text in self._own.named(only))
        plain += generate_latest(self._registry.restricted_registry(only)).decode()
        before = Parts(*(text and restricted(text, only) for text in self._before))
        return Parts(merged((plain, before.plain)), merged((by_type, before.by_type)))

    async def _ask_all(self) -> Parts:
        return await self._ask_siblings(self._keep(), b"")

    async def _ask_for(self, only: Collection[str]) -> Parts:
        return await self._ask_siblings(self._named(only), "\n".join(only).encode())

    async def _ask_siblings(self, own: Parts, names: bytes) -> Parts:
        siblings = self._group.siblings
        told = await asyncio.gather(*(self._ask(number, names) for number in siblings))
        answers = dict(zip(siblings, told, strict=True))
        others = [self._kept_of(n) if parts is None else parts for n, parts in answers.items()]
        up = {self._group.number: True} | {n: parts is not None for n, parts in answers.items()}
        plain, by_type = (merged(texts) for texts in zip(own, *others, strict=True))
        return Parts(plain + _up_lines(sorted(up.items())), by_type)

    def _kept_of(self, number: int) -> Parts:
        return Parts.of(read_text(self._descriptor(number)))

    async def _ask(self, number: int, names: bytes) -> Parts | None:
        client = self._peers.client(self._group.urls[number - 1], for_staff=True)
        try:
            reply = await client.call("POST", METRICS_PATH, names, ASK_SECONDS_MAX, self._lines)
            if reply.status == 200 and reply.body:
                return Parts.of(reply.body)
        except (OSError, TimeoutError, ValueError) as error:
            log.info("a server process does not say its metrics", process=number, error=repr(error))
        self._silent.labels(str(number)).inc()
        return None


def _up_lines(up: Iterable[tuple[int, bool]]) -> str:
    head = f"# HELP {UP} Whether this server process said its metrics.\n# TYPE {UP} gauge\n"
    return head + "".join(f'{UP}{{process="{number}"}} {float(is_up)}\n' for number, is_up in up)
