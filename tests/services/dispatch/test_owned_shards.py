"""Shards that a server owns: claimed, restored, opened, closed, each in its own term."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.ids import ShardId, Term
from fairway.services.dispatch.owned_shards import OwnedShards

deeds = st.sampled_from(["claim", "restored", "open", "close"])
steps = st.lists(st.tuples(deeds, st.integers(0, 3)), max_size=40)


@given(steps)
def test_nobody_is_judged_before_every_lease_was_found(steps: list[tuple[str, int]]) -> None:
    shards = OwnedShards()
    terms, restoring, claims = dict[int, int](), set[int](), 0
    for term, (deed, shard) in enumerate(steps):
        if deed == "claim":
            shards.claim(ShardId(shard), Term(term))
            terms[shard], claims = term, claims + 1
            restoring.add(shard)
            assert shard not in shards.open, "nothing of an earlier term holds"
        elif deed == "restored":
            shards.restored(ShardId(shard))
            restoring.discard(shard)
        elif deed == "close":
            shards.close(ShardId(shard))
            terms.pop(shard, None)
            restoring.discard(shard)
            assert shard not in shards.open
        elif shard in terms:
            shards.open.add(ShardId(shard))
        assert shards.terms == shards.terms_view == terms
        assert shards.all_restored.is_set() == (not restoring)
        assert shards.claims == claims
        for one in range(4):
            expected = None if one in restoring else terms.get(one)
            assert shards.restored_term(ShardId(one)) == expected
