"""Pages of flows: whoever follows the cursor sees each that matches once, in order."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.flows import Kind
from fairway.core.ids import FIRST_SHARD, LOWEST_JOB_ID, TenantId, make_job_id
from fairway.services.jobs.flows import FlowFilter, FlowRecord, found_in

HIGHEST = "f" * 36
NOW = datetime.now(UTC)


def flow(n: int, succeeded: int, kind: Kind) -> FlowRecord:
    id_ = make_job_id(FIRST_SHARD, 1000, n, 0)
    counts = (1, succeeded, 0, 0)
    return FlowRecord(
        id_, TenantId(1), kind, 0, False, *counts, [], None, None, None, NOW, None
    )  # fmt: skip


@given(
    st.lists(st.tuples(st.integers(0, 1), st.sampled_from([Kind.GROUP, Kind.CHAIN])), max_size=12),
    st.sampled_from([None, ["running"], ["succeeded", "failed"]]),
    st.sampled_from([None, [Kind.CHAIN]]),
    st.integers(1, 4),
    st.integers(1, 5),
)
def test_every_flow_that_matches_is_on_one_page(
    made: list[tuple[int, Kind]],
    states: list[str] | None,
    kinds: list[Kind] | None,
    limit: int,
    look: int,
) -> None:
    there = [flow(n, *one) for n, one in reversed(list(enumerate(made)))]
    wanted = FlowFilter(HIGHEST, LOWEST_JOB_ID, limit, states, kinds)
    found: list[str] = []
    while True:
        count = look if wanted.narrows else limit + 1
        seen = [one for one in there if one.id < wanted.before][:count]
        page = found_in(seen, wanted, is_all=len(seen) < count)
        assert len(page.flows) <= limit
        found += [one.id for one in page.flows]
        if page.last is None:
            break
        assert page.last < wanted.before
        wanted = wanted._replace(before=page.last)
    matching = FlowFilter(HIGHEST, LOWEST_JOB_ID, limit, states, kinds)
    assert found == [one.id for one in there if matching.has(one)]
