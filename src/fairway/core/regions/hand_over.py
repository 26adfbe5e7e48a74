"""What a home's answer about held jobs means: taken, refused for good, or to be sent again.

Held jobs were acknowledged: nothing but a refusal that would be the same tomorrow ends the wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairway.core.ids import JobId, ids_from

NOT_KNOWN = "UNAVAILABLE"
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


def is_to_be_sent_again(answer: Any) -> bool:
    """Whether a call, or one of its jobs, was turned away for now only.

    Beside jobs that were made, one of which nothing is known was refused as a double before: to ask
    again would never end.
    """
    if answer is None or isinstance(answer, Mapping):
        return answer is not None and not is_final_refusal(answer)
    refused = [said for said in answer if isinstance(said, Mapping)]
    for_now = {said.get("code") for said in refused if not is_final_refusal(said)}
    return bool(for_now if len(refused) == len(answer) else for_now - {NOT_KNOWN})


def said_of(first: JobId, jobs: int, answer: Any) -> Any:
    """What is to be remembered of a call's jobs, by place; None: all were taken under their ids.

    A text is the id of the job that one turned out to be, an empty one means its own; a mapping is
    a refusal.
    """
    if answer is None or isinstance(answer, Mapping):
        return answer
    ids = ids_from(first, jobs)
    told: list[Any] = []
    for own, said in zip(ids, answer, strict=True):
        if isinstance(said, Mapping):
            told.append(said)
        else:
            told.append("" if said[0] == own else said[0])
    return told if any(told) else None


def in_doubt_here(here: str, asker: str, home: str) -> str | None:
    """The region whose offers, held here, do not count when another asks what is known here.

    What is held is handed over by whoever holds it. But a region that asks itself would take what
    it asks about for arrived; and of two that hold a job which each has offered to the other, while
    the home is a third, both would leave it to the other. There the name decides, everywhere alike.
    """
    if asker == here:
        return here
    return asker if home != asker and asker < here else None
