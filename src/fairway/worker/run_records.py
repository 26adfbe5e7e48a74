"""What code below a handler says by `logging`, found to be the run's that is under way there.

By the context: a coroutine has it, its tasks, and a handler's thread; a thread that user code
starts by itself has none. Records are met where they are made: an app may set up handlers as it
likes, before or after, and loses nothing by us.
"""

from __future__ import annotations

import logging
from typing import Any

from fairway.sdk.handler.context import JOB_LOGGERS, current_ctx

_TOLD = "fairway_told"  # an attribute of records that a run has heard


def hear_logging(level: int) -> None:
    """Records from this level on are made at all, unless the app says otherwise."""
    logging.getLogger().setLevel(level)
    make = logging.getLogRecordFactory()

    def made(*args: Any, **words: Any) -> logging.LogRecord:
        record = make(*args, **words)
        ctx = current_ctx()
        if ctx is not None and not record.name.startswith(JOB_LOGGERS):  # `ctx.log` told it itself
            record.__dict__[_TOLD] = True
            ctx.hear(record)
        return record

    logging.setLogRecordFactory(made)
    if logging.lastResort is not None:  # what no handler takes would be written a second time
        logging.lastResort.addFilter(_is_nobodys)


def _is_nobodys(record: logging.LogRecord) -> bool:
    return not (record.name.startswith(JOB_LOGGERS) or hasattr(record, _TOLD))
