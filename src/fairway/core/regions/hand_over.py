"""What a home's answer about held jobs means: taken, refused for good, or to be sent again.

Held jobs were acknowledged: nothing but a refusal that would be the same tomorrow ends the wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from fairway.core.ids import JobId, ids_from

#: Refusals that another try would meet again. (A missing pool is made by an operator.)
FINAL = frozenset(
    {
        "NOT_UNIQUE",
        "IDEMPOTENCY_KEY_REUSED",
        "INVALID_REQUEST",
        "PAYLOAD_TOO_LARGE",
        "TOO_MANY_JOB_TYPES",
        "PAYLOAD_DOES_NOT_FIT",
    }
)


def is_final_refusal(said: Mapping[str, Any]) -> bool:
    return said.get("code") in FINAL


class HomeAnswer(NamedTuple):
    """What becomes of what was sent. Without any of these it is there, under its own ids."""

    waits: Mapping[str, Any] | None = None  # it is to be sent again: why it was turned away
    told: Any = None  # what is to be remembered of it, if that is all that is left
    left: Mapping[int, Any] = {}  # of a call that was taken in part: see `home_answer`


def home_answer(first: JobId, jobs: int, answer: Any, *, is_job: bool = False) -> HomeAnswer:
    """By a home's answer for one held row, of so many jobs.

    Where a part of a call was taken, what is `left` of it is each job that is not simply there:
    what is to be remembered of it, or None, if it was turned away for now. Nobody knows anything of
    some (`UNAVAILABLE`), beside jobs that were there from an earlier try: they were refused then,
    or never written, and by themselves they are judged anew.

    `is_job`: it is one already, of a tenant that moved. No refusal ends its wait.
    """
    if isinstance(answer, Mapping):
        is_over = is_final_refusal(answer) and not is_job
        return HomeAnswer(told=answer) if is_over else HomeAnswer(waits=answer)
    said = {place: one for place, one in enumerate(answer or ()) if isinstance(one, Mapping)}
    again = [place for place, one in said.items() if not is_final_refusal(one)]
    told = said_of(first, jobs, answer)
    if not again:
        return HomeAnswer(told=told)
    why = said[again[0]]
    if len(again) == jobs:
        return HomeAnswer(waits=why)
    remembered = {place: one for place, one in enumerate(told) if one}
    return HomeAnswer(waits=why, left=remembered | dict.fromkeys(again))


def said_of(first: JobId, jobs: int, answer: Any) -> Any:
    """What is to be remembered of a call's jobs, by place; None: all were taken under their ids.

    A text is the id of the job that one turned out to be, an empty one means its own; a mapping is
    a refusal.
    """
    if answer is None:
        return answer
    ids = ids_from(first, jobs)
    told: list[Any] = []
    for own, said in zip(ids, answer, strict=True):
        if isinstance(said, Mapping):
            told.append(said)
        else:
            told.append("" if said[0] == own else said[0])
    return told if any(told) else None


def in_doubt_here(here: str, asker: str) -> str | None:
    """The region whose offers, held here, do not count when another asks what is known here.

    What is held is handed over by whoever holds it. But a region that asks itself would take what
    it asks about for arrived; and of two that hold a job which each has offered to the other, both
    would leave it to the other. There the name decides, everywhere alike.
    """
    return asker if asker <= here else None
