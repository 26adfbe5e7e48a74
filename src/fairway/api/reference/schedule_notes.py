"""What each field of the messages about schedules means; part of `field_notes.py`."""

from __future__ import annotations

_TERMS = {
    "cron": "Minute, hour, day of month, month, day of week; seconds may come before them.",
    "every_seconds": "A fixed interval instead, counted from starts_at.",
    "timezone": "Whose clocks the expression means.",
    "type": "Which handler runs each job.",
    "payload": "The handler's arguments by name.",
    "pool": "The class of workers to run it.",
    "priority": "Order among your own jobs only: 9 goes before 0.",
    "timeout_seconds": "A run that takes longer is stopped and counts as a failed attempt.",
    "tick_argument": "The handler's argument that gets the tick, as a UTC time.",
    "jitter_seconds": "Each run is due up to this long after its tick, always the same for a tick.",
    "starts_at": "No tick before it; now, unless told otherwise.",
    "ends_at": "No tick after it.",
    "overlap": "What a tick does while the run before it is not over: allow, skip, queue_one or"
    " cancel_running.",
    "catch_up": "Which ticks that nobody was there to fire are run later: none, last or all.",
    "catch_up_window_seconds": "How far back `all` goes; never more than 100 ticks.",
    "paused": "Whether its ticks are silent.",
    "source": "The app that declares it; empty for one made by hand.",
}

SCHEDULE_NOTES: dict[str, dict[str, str]] = {
    "ScheduleRequest": _TERMS,
    "ScheduleView": _TERMS
    | {
        "name": "Its name.",
        "description": "In plain English.",
        "next_runs": "Its next ticks; none while paused or after its end.",
        "last_job": "The job of its newest run by the clock.",
        "created_at": "When it was made.",
        "updated_at": "When it was last changed.",
    },
    "ScheduleList": {
        "schedules": "By name.",
        "next_cursor": "Ask for the next page with it; null on the last page.",
    },
    "SchedulePreview": {"description": "In plain English.", "next_runs": "Its next ticks."},
    "ScheduleRun": {
        "tick": "The moment it stands for, and its identity.",
        "outcome": "fired, skipped (the run before it was not over), or waiting for that.",
        "cause": "clock, backfill or trigger.",
        "job": "The job it made.",
        "recorded_at": "When that happened.",
    },
    "ScheduleRuns": {
        "runs": "Newest first.",
        "next_before": "Ask for the next page with it; null on the last page.",
    },
    "BackfillRequest": {"since": "From this moment.", "until": "To this one, in the past."},
    "BackfillReply": {
        "made": "Runs that were made.",
        "already": "Ticks of the range that had a run before.",
    },
}
