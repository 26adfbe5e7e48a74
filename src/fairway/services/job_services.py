"""What people ask about jobs, and ask of them: those services, joined.

Composition only. Where jobs come in is `submit/`, where schedules and bulk actions are made is
`platform.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from fairway.core.ids import JobId
from fairway.services.backpressure.connection_turns import HotTurns
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.dispatch.fair_share_loop import FairShareLoop
from fairway.services.jobs.control import Control
from fairway.services.jobs.dead_letters import DeadLetters
from fairway.services.jobs.explainer import Explainer
from fairway.services.jobs.families import Families
from fairway.services.jobs.far_runs import FarRuns
from fairway.services.jobs.flows import Flows
from fairway.services.jobs.job_logs import JobLogs
from fairway.services.jobs.lookup import JobLookup
from fairway.services.jobs.many_waits import ManyWaits
from fairway.services.jobs.waiting import JobWaits
from fairway.services.jobs.watchers import Watchers
from fairway.services.object_storage.checkpoints import Checkpoints
from fairway.services.server_parts import ServerParts
from fairway.services.workers.run_logs import RunLogs


class JobServices:
    def __init__(
        self,
        parts: ServerParts,
        dispatcher: Dispatcher,
        turns: HotTurns,
        far_runs: FarRuns,
        fair_share_loop: FairShareLoop,
        checkpoints: Checkpoints,
        result_waits: Callable[[JobId], str | None],
    ) -> None:
        database, store_clock, watchers = parts.database, parts.store_clock, parts.watchers
        self.lookup = JobLookup(
            database, dispatcher, far_runs, store_clock, tenant_shards=parts.tenant_shards
        )
        self.waits = JobWaits(self.lookup, watchers, dispatcher, parts.clock)
        self.many_waits = ManyWaits(database, watchers, parts.clock)
        self.explainer = Explainer(
            database,
            dispatcher,
            self.lookup,
            fair_share_loop,
            checkpoints,
            store_clock,
            result_waits,
        )
        self.control = Control(
            database,
            turns,
            dispatcher,
            self.lookup,
            watchers,
            store_clock,
            parts.wakeups.of("promoter"),
            parts.wakeups.of("bulk actions"),
        )
        self.families = Families(database, self.lookup, self.control, store_clock)
        self.log_watchers = Watchers()  # apart: who waits for a job need not look at every line
        self.logs = JobLogs(database, self.log_watchers, parts.tenant_shards)
        self.run_logs = RunLogs(database, self.log_watchers, parts.instruments, parts.tenant_shards)
        self.dead_letters = DeadLetters(
            database, dispatcher, watchers, store_clock, tenant_shards=parts.tenant_shards
        )
        self.flows = Flows(
            database,
            self.lookup,
            self.control,
            self.dead_letters,
            tenant_shards=parts.tenant_shards,
        )
