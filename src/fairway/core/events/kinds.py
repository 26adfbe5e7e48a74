"""The kinds of events there are: a noun, a verb, and a sentence on when it is written."""

from __future__ import annotations

from collections.abc import Mapping

#: What happens to jobs of a tenant that asked for it (`job_events`), or that asked themselves.
OF_JOBS: Mapping[str, str] = {
    "job.accepted": "A job was accepted: it is queued, or scheduled for later.",
    "job.queued": "A scheduled job is due, or what it waited for is there: it waits for a slot.",
    "job.started": "A run began. Of the short pool, only if it takes longer than a moment.",
    "job.retrying": "A run failed, and the job will be tried again.",
    "job.requeued": "A run was cut short or handed back, and the job will run again.",
    "job.succeeded": "A job ended well.",
    "job.dead": "A job ended without success: it is a dead letter.",
    "job.cancelled": "A job was cancelled.",
    "job.expired": "A job was not started in time, and will not be.",
    "job.replayed": "A dead letter is in the queue again.",
}

#: What the platform tells every tenant, whether it asked or not.
NOTICES: Mapping[str, str] = {
    "job.late": "A job's last moment to start had passed before it could.",
    "circuit.opened": "Something that a job type depends on fails: its jobs wait.",
    "circuit.closed": "What a job type depends on is back: its jobs run again.",
    "quarantine.imposed": "Most jobs of a type fail: each is tried at most twice.",
    "quarantine.lifted": "Jobs of a type go well again and have all their attempts.",
    "recycling.throttled": "Jobs in a pool killed too many worker processes: one at a time now.",
    "recycling.restored": "Jobs in a pool start as before.",
    "checkpoint.missing": "A long job has run for a while without a checkpoint.",
    "checkpoint.lost": "A checkpoint is gone from object storage, or damaged.",
    "pool.violated": "A job ran for longer than its pool is meant for.",
    "type.reclassified": "A job type was moved to another pool, by how long its runs take.",
    "spend.near": "Four fifths of what a tenant may spend this month are spent.",
    "spend.reached": "All of it is spent: when the grace is over, no more jobs start.",
    "spend.paused": "The grace is over: jobs are accepted, and wait.",
    "spend.resumed": "The cap was raised or the month is over: jobs start again.",
    "webhook.disabled": "A webhook's receiver is gone, or failed for days: nothing is sent to it.",
    "webhook.behind": "A webhook's receiver fell so far behind that events are not sent to it.",
    "outbox.refused": "Jobs that were committed with a transaction cannot be jobs.",
}

#: What operators' own webhooks are sent; it stands in nobody's log.
OF_ALARMS: Mapping[str, str] = {
    "alarm.raised": "An alarm was raised.",
    "alarm.ended": "An alarm is over.",
}

KINDS: Mapping[str, str] = {**OF_JOBS, **NOTICES}
