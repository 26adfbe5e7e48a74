"""Which events somebody wants: by kind, by job type, of one job. Pure; refuses unknown kinds."""

from __future__ import annotations

from difflib import get_close_matches
from typing import NamedTuple

from fairway.core.errors import InvalidRequest
from fairway.core.events.event import Event
from fairway.core.events.kinds import KINDS

KINDS_MAX = 50  # in one filter; there are fewer
NEAR_SHOWN = 3
CHARACTERS_SHOWN = 64

_NOUNS = frozenset(kind.partition(".")[0] for kind in KINDS)


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


def parse_kinds(text: str) -> tuple[str, ...]:
    """`job.*,circuit.opened` as its parts; empty: all kinds. Refuses what would never match."""
    parts = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if len(parts) > KINDS_MAX:
        raise InvalidRequest(
            f"{len(parts)} kinds of events are more than there are; name at most {KINDS_MAX}, or"
            " whole groups such as job.*.",
            field="kind",
        )
    for part in parts:
        if not _is_known(part):
            raise InvalidRequest(_unknown(part), field="kind")
    return parts


def _is_known(part: str) -> bool:
    noun, _, verb = part.partition(".")
    return part in KINDS or part == "*" or (verb == "*" and noun in _NOUNS)


def _unknown(part: str) -> str:
    known = [*KINDS, *(f"{noun}.*" for noun in sorted(_NOUNS))]
    shown = part[:CHARACTERS_SHOWN]  # what is compared is short, whatever was sent
    near = get_close_matches(shown, known, n=NEAR_SHOWN, cutoff=0.5)
    hint = f"Did you mean {' or '.join(near)}?" if near else "They are named such as job.dead."
    return f"There is no kind of event {shown!r}. {hint}"
