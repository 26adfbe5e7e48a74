"""A job is made by position, of its stream's key and of a row: their orders must agree."""

from __future__ import annotations

import re

import pytest

from fairway.core.backlog.streams import StreamKey
from fairway.core.job import QueuedJob
from fairway.store.backlog import PAYLOAD
from fairway.store.sql import load

FIELDS = QueuedJob.__struct_fields__
AFTER_KEY = 1 + len(StreamKey._fields)


def columns(name: str) -> list[str]:
    """What a statement answers, in its order."""
    text = str(load("backlog.sql")[name].text).split("FROM unnest")[0].removeprefix("SELECT ")
    parts = re.split(r",(?![^()]*\))", text)
    return [re.split(r" AS |\.", part.strip())[-1].strip() for part in parts]


def test_a_job_begins_with_its_id_and_the_key_of_its_stream() -> None:
    assert FIELDS[:AFTER_KEY] == ("id", *StreamKey._fields)


@pytest.mark.parametrize("name", ["read_streams", "read_streams_by_bytes"])
def test_a_row_goes_on_where_the_key_ends(name: str) -> None:
    number, id_, *rest = columns(name)
    assert (number, id_) == ("number", "id")
    assert tuple(rest) == FIELDS[AFTER_KEY:]
    assert columns(name)[PAYLOAD] == "payload"
