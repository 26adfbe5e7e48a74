"""Lines of the standard library's logging, written as our own are. Small: runners import it too."""

from __future__ import annotations

import json
import logging
import sys
import threading
import warnings
from datetime import UTC, datetime
from types import TracebackType
from typing import TextIO

from fairway.core.redaction import USUAL, Redaction, without_rows


class JsonLines(logging.Formatter):
    """Lines of libraries, which log by the standard library, as ours are written."""

    def __init__(self, redaction: Redaction = USUAL, server: str = "") -> None:
        super().__init__()
        self._redaction = redaction
        self._always = {"server": server} if server else {}

    def format(self, record: logging.LogRecord) -> str:
        line = {"event": _hidden(self._redaction, record.getMessage()), "logger": record.name}
        line |= {"level": record.levelname.lower(), "timestamp": _made_at(record)}
        line |= self._always
        if job := getattr(record, "job_id", ""):
            line["job"] = str(job)
        if record.exc_info:
            exception = self.formatException(record.exc_info)
            line["exception"] = _hidden(self._redaction, exception)
        return json.dumps(line)


class TextLines(logging.Formatter):
    """The same for people: a stack stands below its line."""

    def __init__(self, redaction: Redaction = USUAL, server: str = "") -> None:
        super().__init__()
        self._redaction = redaction
        self._server = f" server={server}" if server else ""

    def format(self, record: logging.LogRecord) -> str:
        said = _hidden(self._redaction, record.getMessage())
        level = record.levelname.lower()
        job = f" job={record.job_id}" if hasattr(record, "job_id") else ""
        line = f"{_made_at(record)} [{level:<9}] {said} logger={record.name}{job}{self._server}"
        if not record.exc_info:
            return line
        exception = self.formatException(record.exc_info)
        return f"{line}\n{_hidden(self._redaction, exception)}"


def _made_at(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat().replace("+00:00", "Z")


def _hidden(redaction: Redaction, text: str) -> str:
    return redaction.text(without_rows(text))


def write_unclaimed(formatter: logging.Formatter) -> None:
    """What no handler takes, such as lines of the event loop, warnings and errors nobody caught."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(logging.WARNING)
    handler.setFormatter(formatter)
    logging.lastResort = handler
    warnings.showwarning = _tell_warning
    sys.excepthook = _tell_end
    threading.excepthook = _tell_end_of_thread
    sys.unraisablehook = _tell_ignored


def _tell_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Not by `logging.captureWarnings`: it would have nobody take the line, and drop it."""
    place = f"{filename}:{lineno}"
    logging.getLogger("py.warnings").warning("%s: %s (%s)", category.__name__, message, place)


def _tell_end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):  # somebody at a keyboard knows why
        sys.__excepthook__(kind, error, trace)
        return
    logging.getLogger("fairway").critical(
        "nobody caught an error: this process ends", exc_info=(kind, error, trace)
    )


def _tell_end_of_thread(said: threading.ExceptHookArgs) -> None:
    if said.exc_value is None or isinstance(said.exc_value, SystemExit):
        return
    name = said.thread.name if said.thread else "?"
    found = (said.exc_type, said.exc_value, said.exc_traceback)
    logging.getLogger("fairway").error("an error ended the thread %s", name, exc_info=found)


def _tell_ignored(said: sys.UnraisableHookArgs) -> None:
    if said.exc_value is not None:
        found = (said.exc_type, said.exc_value, said.exc_traceback)
        where = f"{said.err_msg or 'ignored in'} {said.object!r}"
        log = logging.getLogger("fairway")
        log.error("an error could not be raised: %s", where, exc_info=found)
