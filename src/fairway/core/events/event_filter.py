"""Which events somebody wants: by kind, by job type, of one job. Pure; refuses unknown kinds."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from typing import NamedTuple

from fairway.core.errors import InvalidRequest
from fairway.core.events.event import Event
from fairway.core.events.kinds import KINDS

KINDS_MAX = 50  # in one filter; there are fewer
NEAR_SHOWN = 3
CHARACTERS_SHOWN = 64


class EventFilter(NamedTuple):
    """What is empty does not narrow; what is not must all be met."""

    kinds: tuple[str, ...] = ()  # as `parse_kinds` has them: "job.dead", "job.*"
    types: tuple[str, ...] = ()  # names of job types: events about these and their jobs
    job: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether it lets everything through."""
        return not (self.kinds or self.types or self.job)

    def matches(self, event: Event) -> bool:
        return (
            (not self.kinds or is_among(event.kind, self.kinds))
            and (not self.types or event.subject in self.types)
            and (self.job is None or event.job == self.job)
        )


def is_among(kind: str, kinds: tuple[str, ...]) -> bool:
    return kind in kinds or f"{kind.partition('.')[0]}.*" in kinds or "*" in kinds


def parse_kinds(text: str, known: Collection[str] = KINDS) -> tuple[str, ...]:
    """`job.*,circuit.opened` as its parts; empty: all kinds. Refuses what would never match."""
    parts = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if len(parts) > KINDS_MAX:
        raise InvalidRequest(
            f"{len(parts)} kinds of events are more than there are; name at most {KINDS_MAX}, or"
            " whole groups such as job.*.",
            field="kind",
        )
    for part in parts:
        if not (part in known or part == "*" or part in _groups(known)):
            raise InvalidRequest(_unknown(part, known), field="kind")
    return parts


def _groups(known: Collection[str]) -> list[str]:
    return sorted({f"{kind.partition('.')[0]}.*" for kind in known})


def _unknown(part: str, known: Collection[str]) -> str:
    shown = part[:CHARACTERS_SHOWN]  # what is compared is short, whatever was sent
    near = get_close_matches(shown, [*known, *_groups(known)], n=NEAR_SHOWN, cutoff=0.5)
    example = next(iter(known)) if "job.dead" not in known else "job.dead"
    hint = f"Did you mean {' or '.join(near)}?" if near else f"They are named such as {example}."
    return f"There is no kind of event {shown!r}. {hint}"
