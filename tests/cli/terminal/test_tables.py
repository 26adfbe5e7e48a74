"""Tables: nothing that was said is lost, no text moves the cursor, what fits the screen does."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.cli.terminal.output import shown
from fairway.cli.terminal.tables import (
    FOLD_GOOD,
    FOLD_MIN,
    GAP,
    Heading,
    Room,
    cells_of,
    folded,
    layout,
    lines_below,
    lines_of,
    visible,
    visible_lines,
)

texts = st.text(alphabet="ab é中\u0301-", max_size=40)
rooms: st.SearchStrategy[Room] = st.sampled_from(["whole", "fold", "spare"])


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[Heading], list[list[str]]]:
    headings = draw(st.lists(st.builds(Heading, texts, rooms), min_size=1, max_size=6))
    row = st.lists(texts, min_size=len(headings), max_size=len(headings))
    return headings, draw(st.lists(row, max_size=5))


@given(tables(), st.integers(20, 120))
def test_only_spare_columns_are_left_out_and_only_folding_ones_shrink(
    table: tuple[list[Heading], list[list[str]]], width: int
) -> None:
    headings, rows = table
    whole, shown = layout(headings, rows, None), layout(headings, rows, width)
    assert whole.left_out == []
    for place, heading in enumerate(headings):
        if place in shown.below:
            assert heading.room == "fold"
            assert place not in shown.widths
        elif place not in shown.widths:
            assert heading.room == "spare"
        elif heading.room != "fold":
            assert shown.widths[place] == whole.widths[place]
        else:
            assert shown.widths[place] >= min(whole.widths[place], FOLD_MIN)
    taken = sum(shown.widths.values()) + GAP * (len(shown.widths) - 1)
    at_least = [
        min(wide, FOLD_MIN) if headings[place].room == "fold" else wide
        for place, wide in whole.widths.items()
        if headings[place].room != "spare" and place not in shown.below
    ]
    if sum(at_least) + GAP * (len(at_least) - 1) <= width:
        assert taken <= width


@given(tables(), st.integers(20, 120))
def test_what_is_shown_is_whole(table: tuple[list[Heading], list[list[str]]], width: int) -> None:
    headings, rows = table
    widths, _, below = layout(headings, rows, width)
    for row in rows:
        lines = lines_of(row, widths)
        under = lines_below(row, below, width)
        assert all(cells_of(line) <= width for line in under)
        letters = sorted("".join((*lines, *under)).replace(" ", ""))
        assert letters == sorted("".join(row[one] for one in (*widths, *below)).replace(" ", ""))
        if widths and all(headings[place].room != "fold" for place in widths):
            assert len(lines) == 1
            assert all(row[place].rstrip() in lines[0] for place in widths)


@given(texts, st.integers(2, 30))
def test_a_text_is_folded_within_its_width_and_loses_nothing(text: str, width: int) -> None:
    lines = folded(text, width)
    assert all(cells_of(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_words_stay_together_where_they_can() -> None:
    assert folded("no user 7 in this house", 10) == ["no user 7", "in this", "house"]
    assert folded("0123456789abc", 10) == ["0123456789", "abc"]


@given(st.text())
def test_no_text_moves_the_cursor_of_who_reads_it(text: str) -> None:
    line = visible(text)
    assert not any(ord(one) < 32 or 127 <= ord(one) < 160 for one in line)
    assert "\u202e" not in line
    assert len(line.splitlines()) <= 1
    assert visible_lines(text).count("\n") <= len(text.splitlines())


def test_what_can_be_spared_goes_before_a_sentence_becomes_a_rope_of_letters() -> None:
    headings = [Heading("id"), Heading("error", "fold"), Heading("fingerprint", "spare")]
    rows = [["x" * 36, "the bank did not answer in time for this order", "f" * 16]]
    narrow, wide = layout(headings, rows, 80), layout(headings, rows, 84)
    assert (narrow.left_out, narrow.widths[1]) == (["fingerprint"], 42)
    assert (wide.left_out, wide.widths[1]) == ([], FOLD_GOOD)


def test_sentences_without_room_stand_below_their_row() -> None:
    headings = [Heading("name"), Heading("about"), Heading("seen", "fold"), Heading("f", "spare")]
    rows = [["x" * 30, "y" * 36, "jobs wait and no worker runs them", "z"], ["x", "y", "–", "z"]]
    shown = layout(headings, rows, 80)
    assert (sorted(shown.widths), shown.left_out, shown.below) == ([0, 1, 3], [], [2])
    assert lines_below(rows[0], shown.below, 24) == ["    jobs wait and no", "    worker runs them"]
    assert lines_below(rows[1], shown.below, 24) == []


def test_large_numbers_are_grouped_for_people() -> None:
    assert [shown(one) for one in (9999, 10_000, -8_388_608, True, 0.5)] == [
        "9999",
        "10,000",
        "-8,388,608",
        "yes",
        "0.5",
    ]
