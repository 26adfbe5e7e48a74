"""The board: one score for each application, ranked, ties in the order they came, page by page."""

from __future__ import annotations

from pathlib import Path

import pytest
from examples.scoring.board import Board, Row, Score
from examples.scoring.jobs import simulated
from hypothesis import given
from hypothesis import strategies as st


@pytest.fixture
def board(tmp_path: Path) -> Board:
    return Board(tmp_path)


def fill(board: Board, scores: list[int]) -> None:
    for number, score in enumerate(scores):
        board.record(f"id-{number:03}", f"candidate {number}", Score(score))


def test_the_best_stands_first_and_equals_share_a_rank_in_the_order_they_came(board: Board) -> None:
    fill(board, [50, 90, 70, 90, 50])
    places = [(place.rank, place.row.id, place.row.score) for place in board.ranking(10)]
    assert places == [
        (1, "id-001", 90),
        (1, "id-003", 90),
        (3, "id-002", 70),
        (4, "id-000", 50),
        (4, "id-004", 50),
    ]


def test_a_second_run_of_the_same_job_changes_nothing(board: Board) -> None:
    first = board.record("a", "Ada", Score(70, "good", "model", 10, 5, 0.01))
    assert board.record("a", "Ada", Score(20)) == first
    assert board.find("a") == first
    assert board.totals().scored == 1
    assert board.totals().dollars == pytest.approx(0.01)


def test_nobody_is_found_who_was_not_scored(board: Board) -> None:
    assert board.find("nobody") is None
    assert board.ranking(10) == []


def test_pages_join_to_the_whole_ranking_whatever_their_size(tmp_path: Path) -> None:
    board = Board(tmp_path)
    fill(board, [n * 37 % 11 for n in range(40)])
    whole = board.ranking(100)
    for size in (1, 3, 7, 40):
        joined, after = [], None
        while page := board.ranking(size, after):
            joined += page
            after = page[-1].row
        assert joined == whole


def test_a_page_stays_where_it_was_while_better_ones_come_in(board: Board) -> None:
    fill(board, [10, 20, 30])
    after: Row = board.ranking(2)[-1].row
    board.record("zzz", "late", Score(99))
    assert [place.row.score for place in board.ranking(2, after)] == [10]


@given(st.text(min_size=1), st.dictionaries(st.text(), st.integers()))
def test_a_simulated_score_depends_on_the_application_alone(
    name: str, text: dict[str, int]
) -> None:
    score = simulated(name, text).score
    assert score == simulated(name, dict(reversed(text.items()))).score
    assert 0 <= score <= 100
