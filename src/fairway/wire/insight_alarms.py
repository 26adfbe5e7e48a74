"""Alarms on the wire: what people should know of now, and what helps."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Struct

from fairway.wire.doc import doc


class AlarmView(Struct, kw_only=True):
    """An alarm that is raised."""

    name: Annotated[str, doc("Which alarm, such as `OLDEST_AGE_OVER_SLO`.")]
    severity: Annotated[
        Literal["warning", "critical"], doc("critical: jobs suffer now; warning: they may soon.")
    ]
    subject: Annotated[str, doc("Whom it is about: the platform, a pool, a tenant, a disk.")]
    since: Annotated[datetime, doc("Since when there has been trouble.")]
    text: Annotated[str, doc("What was seen, in words.")]
    value: Annotated[float, doc("What was measured when it was last too much.")]
    threshold: Annotated[float, doc("Above which it is too much.")]
    runbook: Annotated[str, doc("What to look at first, and what helps.")]
    link: Annotated[str, doc("The page of the dashboard that shows it.")]


class AlarmList(Struct, kw_only=True):
    """The alarms that are raised."""

    items: Annotated[list[AlarmView], doc("The worst first, of those the oldest.")]
