"""Named statements: names become positions once, casts and comments stay out of the way."""

from __future__ import annotations

import pytest

from fairway.store.sql import _compile, load


def test_names_become_positions_and_repeat() -> None:
    statement = _compile("x", "SELECT :b, :a::int[], :b WHERE id = :a")
    assert statement.text == "SELECT $1, $2::int[], $1 WHERE id = $2"
    assert statement.parameters == ("b", "a")
    assert statement.bind(a=1, b=2) == [2, 1]


def test_a_cast_is_no_parameter() -> None:
    assert _compile("x", "SELECT id::text, now()::date").parameters == ()


def test_comments_are_not_sent() -> None:
    statement = _compile("x", "SELECT 1 -- not a :parameter\n-- nor :this\n")
    assert (statement.text, statement.parameters) == ("SELECT 1", ())


def test_a_missing_value_is_refused() -> None:
    with pytest.raises(KeyError, match="shard"):
        _compile("x", "SELECT :shard").bind(share=1)


def test_a_file_is_loaded_by_name() -> None:
    statements = load("outcomes.sql")
    assert set(statements) == {
        "record_successes",
        "record_successes_in_place",
        "record_parents",
        "settle",
        "end_refused",
        "read_ends",
        "cancel_waiting",
        "cancel_many",
    }
    assert statements["settle"].name == "settle"
