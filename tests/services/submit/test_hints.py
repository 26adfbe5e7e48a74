"""Hints for other owners: the oldest job of each stream, gathered until somebody tells."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.backlog.streams import StreamKey
from fairway.core.ids import PoolId, ShardId, TenantId, TypeId
from fairway.services.submit.hints import Hints

KEYS = [StreamKey(TenantId(1), PoolId(1), TypeId(type_), 5) for type_ in (1, 2)]
firsts = st.dictionaries(st.sampled_from(KEYS), st.text("abc", min_size=1, max_size=2))


@given(st.lists(st.tuples(st.integers(0, 2), firsts, st.booleans()), max_size=20))
def test_each_owner_hears_the_oldest_of_each_stream_once(
    said: list[tuple[int, dict[StreamKey, str], bool]],
) -> None:
    hints, known = Hints(), dict[ShardId, dict[StreamKey, str]]()
    for number, some, is_taken in said:
        shard = ShardId(number)
        hints.news.clear()
        hints.add(shard, some)
        assert hints.news.is_set()
        mine = known.setdefault(shard, {})
        for key, first in some.items():
            mine[key] = min(first, mine.get(key, first))
        assert sorted(hints.shards) == sorted(known)
        if is_taken:
            assert hints.take(shard) == known.pop(shard)
        assert all((one in hints) == (one in known) for one in map(ShardId, range(3)))


def test_jobs_for_later_are_a_hint_as_well() -> None:
    hints = Hints()
    hints.add(ShardId(3), {})
    assert hints.shards == [3]
    assert hints.take(ShardId(3)) == {}
    assert hints.shards == []
