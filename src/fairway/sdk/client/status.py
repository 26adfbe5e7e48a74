"""A job as its caller looks at it: the view of the API, in plain Python values.

On the way the parts that are a tenant's own stay JSON text, so that a result can be read as the
type that its handler declares. A person who prints a status, or a web handler that returns a part
of it, wants values.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET

from fairway.wire.messages import JobView

_JSON_FIELDS = ("progress", "payload", "result", "error")


class JobStatus(JobView, kw_only=True):
    """What `handle.status()` answers. What a job does not have, or is too large to show, is None.

    `handle.result()` gives the result as its declared type; here it is as JSON has it.
    """

    progress: Any = None
    payload: Any = None
    result: Any = None
    error: Any = None
    history: list[Any] = []  # noqa: RUF012  # a Struct copies it


def status_of(view: JobView) -> JobStatus:
    if isinstance(view, JobStatus):
        return view
    found = {name: getattr(view, name) for name in view.__struct_fields__}
    found |= {name: _value(found[name]) for name in _JSON_FIELDS}
    found["history"] = [_value(one) for one in found["history"] or []]
    return JobStatus(**found)


def _value(text: Any) -> Any:
    return None if text is None or text is UNSET else msgspec.json.decode(text)
