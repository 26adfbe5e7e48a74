"""What is known of an upload: good for what was looked at, and for nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.core.errors import InvalidRequest
from fairway.core.object_storage.object_names import Seen
from fairway.core.object_storage.upload_facts import RULES_MAX, UploadFacts, upload_facts

SEEN, OTHER = Seen(5, "one"), Seen(5, "two")
facts = st.builds(
    UploadFacts,
    st.binary(min_size=32, max_size=32) | st.just(b""),
    st.none() | st.builds(Seen, st.integers(0, 1 << 40), st.text()),
    st.binary(min_size=32, max_size=32),
    st.lists(st.text()).map(tuple),
    st.text(),
    st.text(),
)


@given(facts)
def test_what_is_written_beside_it_is_read_again(known: UploadFacts) -> None:
    assert upload_facts(known.text()) == known


@pytest.mark.parametrize("nothing", [None, b""])
def test_nothing_is_known_at_first(nothing: bytes | None) -> None:
    assert upload_facts(nothing) == UploadFacts()
    assert not upload_facts(nothing).says_enough(SEEN, "")


def test_a_look_is_good_for_its_version_and_its_rules() -> None:
    known = UploadFacts().found(SEEN, b"d", "rule")
    assert known.says_enough(SEEN, "rule")
    assert known.says_enough(SEEN, "")
    assert not known.says_enough(SEEN, "another rule")
    assert not known.says_enough(OTHER, "rule"), "of the same size, and not the same"
    assert known.found(OTHER, b"e", "").rules == (), "what fitted before was something else"


def test_so_many_rules_are_remembered_and_the_newest_stay() -> None:
    known = UploadFacts()
    for number in range(RULES_MAX + 3):
        known = known.found(SEEN, b"d", f"rule {number}")
    known = known.found(SEEN, b"d", "rule 5")
    assert len(known.rules) == RULES_MAX
    assert known.rules[-2:] == (f"rule {RULES_MAX + 2}", "rule 5")


def test_a_flaw_is_told_whatever_the_rule() -> None:
    known = UploadFacts(b"t").flawed(SEEN, InvalidRequest("no JSON", code="INVALID_JSON"))
    assert known.says_enough(SEEN, "any")
    with pytest.raises(InvalidRequest, match="no JSON") as told:
        known.raise_flaw()
    assert (told.value.code, told.value.field) == ("INVALID_JSON", "/payload_upload")
    UploadFacts().raise_flaw()


def test_what_came_here_and_lies_there_otherwise_is_damaged() -> None:
    assert UploadFacts(b"t").is_damaged(b"u")
    assert not UploadFacts(b"t").is_damaged(b"t")
    assert not UploadFacts().is_damaged(b"u"), "it came straight to the bucket"
