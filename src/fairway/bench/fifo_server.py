"""`python -m fairway.bench.fifo_server`: `fairway server`, but first come is first served.

What fair share is measured against, and nothing else. Tenants are served in the order in which they
came to have work, each until it has none. It knows no weights, charges nothing and protects nobody.
No server of a user's can be told to do so: this is the only program with it.
"""

from __future__ import annotations

from collections.abc import Callable

from fairway.cli.processes import serve
from fairway.core.fair_share.entitlements import ShareSettings
from fairway.core.fair_share.fairness import JobT, PoolShare
from fairway.core.fair_share.queue import DONE, OWN, Running
from fairway.core.ids import TenantId


class FirstCome(PoolShare):
    def __init__(self, settings: ShareSettings) -> None:
        super().__init__(settings)
        self._line: dict[TenantId, None] = {}  # tenants with work, in the order they came
        self._nobody = self._competitors.node(TenantId(1))

    def wake(self, tenant: TenantId, now_us: int) -> None:
        self._line.setdefault(tenant)

    def sleep(self, tenant: TenantId, now_us: int) -> None:
        self._line.pop(tenant, None)

    @property
    def has_work(self) -> bool:
        return bool(self._line)

    def tick(self, now_us: int) -> None:
        return

    def grant(
        self,
        free: int,
        take: Callable[[TenantId], JobT | None],
        now_us: int,
        *,
        lend: Callable[[TenantId], JobT | None] | None = None,
    ) -> list[tuple[JobT, Running]]:
        granted: list[tuple[JobT, Running]] = []
        for tenant in list(self._line):
            while len(granted) < free and (job := take(tenant)) is not None:
                estimate = self._estimates.of(job.type)
                running = Running(self._nobody, estimate, now_us, now_us, 0)
                running.kind = OWN
                granted.append((job, running))
            if len(granted) >= free:
                break
        return granted

    def finish(self, running: Running, now_us: int) -> None:
        running.phase = DONE


if __name__ == "__main__":
    serve.run(FirstCome)
