"""Problems on the wire: every code has its status and page, and both sides agree on the class."""

from __future__ import annotations

import msgspec
import pytest

from fairway.core.errors import FairwayError, InvalidRequest, LimitReached
from fairway.wire.problems import CODES, encode, error_of, naming_its_field, problem_of, type_of


@pytest.mark.parametrize("code", CODES)
def test_a_code_survives_the_way_there_and_back(code: str) -> None:
    sent = problem_of(FairwayError("What happened.", code=code, field="/x"), request_id="r")
    heard = error_of(msgspec.json.decode(encode(sent)), retry_after_seconds=7)
    assert (heard.code, heard.message, heard.field) == (code, "What happened.", "/x")
    if CODES[code][0] == 429:
        assert isinstance(heard, LimitReached)
        assert heard.retry_after_seconds == 7


@pytest.mark.parametrize(
    ("field", "message", "said"),
    [
        ("/timeout_seconds", "Expected `float` > 0.0", "timeout_seconds: Expected `float` > 0.0"),
        ("/jobs/3/pool", "There is no pool 'x'.", "jobs.3.pool: There is no pool 'x'."),
        ("/weight", "weight must be above zero", "weight must be above zero"),
        ("", "It is not there.", "It is not there."),
    ],
)
def test_a_sentence_names_its_field_once(field: str, message: str, said: str) -> None:
    error = naming_its_field(InvalidRequest(message, field=field))
    assert (error.message, str(error), error.field) == (said, said, field)


def test_a_code_that_is_not_ours_to_tell_is_internal() -> None:
    problem = problem_of(InvalidRequest("x", code="SOMETHING_ELSE"))
    assert (problem.status, problem.code) == (500, "INTERNAL")


def test_types_are_pages_on_the_server() -> None:
    assert type_of("QUEUE_DEPTH_EXCEEDED") == "/problems/queue-depth-exceeded"
