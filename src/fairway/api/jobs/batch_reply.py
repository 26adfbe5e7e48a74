"""The reply to a batch: one verdict an item, in order."""

from __future__ import annotations

import msgspec

from fairway.core.errors import FairwayError
from fairway.services.submit.submission_group import Accepted, Verdict
from fairway.wire import messages, problems


def all_replayed(answers: list[Verdict]) -> bool:
    """Whether the whole batch was there before: nothing in it was made now."""
    accepted = [answer for answer in answers if isinstance(answer, Accepted)]
    return bool(accepted) and all(answer.replayed for answer in accepted)


def reply_of(answers: list[Verdict]) -> messages.BatchReply:
    items = [
        messages.BatchItem(status=202, id=answer.id)
        if isinstance(answer, Accepted)
        else _refused_item(answer)
        for answer in answers
    ]
    accepted = sum(item.status == 202 for item in items)
    return messages.BatchReply(accepted=accepted, items=items)


def _refused_item(error: FairwayError) -> messages.BatchItem:
    problem = problems.problem_of(error)
    return messages.BatchItem(status=problem.status, problem=msgspec.to_builtins(problem))
