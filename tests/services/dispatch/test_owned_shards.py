"""Shards that a server owns: claimed, restored, opened, closed, each in its own term."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.ids import ShardId, TenantId, Term
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.services.dispatch.owned_shards import OwnedShards

deeds = st.sampled_from(["claim", "restored", "delay", "open", "close"])
steps = st.lists(st.tuples(deeds, st.integers(0, 3)), max_size=40)


@given(steps)
def test_nobody_is_judged_before_every_lease_was_found(steps: list[tuple[str, int]]) -> None:
    shards = OwnedShards(TenantShards(4))
    terms, restoring, delayed, claims = dict[int, int](), set[int](), set[int](), 0
    for term, (deed, shard) in enumerate(steps):
        if deed == "claim":
            shards.claim(ShardId(shard), Term(term))
            terms[shard], claims = term, claims + 1
            restoring.add(shard)
            delayed.discard(shard)
            assert shard not in shards.open, "nothing of an earlier term holds"
        elif deed == "restored":
            assert shards.restored(ShardId(shard)) == (shard in delayed)
            restoring.discard(shard)
            delayed.discard(shard)
        elif deed == "delay":
            shards.delay(ShardId(shard))
            delayed |= restoring & {shard}
        elif deed == "close":
            shards.close(ShardId(shard))
            terms.pop(shard, None)
            restoring.discard(shard)
            delayed.discard(shard)
            assert shard not in shards.open
        elif shard in terms:
            shards.open.add(ShardId(shard))
        assert shards.terms == shards.terms_view == terms
        assert shards.all_restored.is_set() == (restoring <= delayed)
        assert shards.claims == claims
        for one in range(4):
            expected = None if one in restoring else terms.get(one)
            assert shards.restored_term(ShardId(one)) == expected


trusting = st.tuples(
    st.sampled_from(["claim", "close", "trust", "suspend", "resume", "all"]),
    st.integers(0, 3),
    st.integers(0, 5),
)


@given(st.lists(trusting, max_size=40), st.integers(0, 5))
def test_each_shard_is_trusted_for_itself(steps: list[tuple[str, int, int]], now_us: int) -> None:
    shards = OwnedShards(TenantShards(4))
    trust, suspended, of_new = dict[int, int](), set[int](), 0
    for term, (deed, number, until_us) in enumerate(steps):
        shard = ShardId(number)
        if deed in ("claim", "close"):
            (shards.claim(shard, Term(term)) if deed == "claim" else shards.close(shard))
            trust.pop(number, None)
            suspended.discard(number)
            if deed == "claim":
                trust[number] = of_new
        elif deed == "all":
            shards.trust(until_us)
            trust, of_new = dict.fromkeys(trust, until_us), until_us
        elif number in trust:
            if deed == "trust":
                shards.trust(until_us, [shard])
                trust[number] = until_us
            else:
                (shards.suspend if deed == "suspend" else shards.resume)([shard])
                (suspended.add if deed == "suspend" else suspended.discard)(number)
    may = {number: number not in suspended and now_us < us for number, us in trust.items()}
    for tenant in map(TenantId, range(8)):
        home = TenantShards(4).of(tenant)
        if home in trust:
            assert shards.may_grant_to(tenant, now_us) == may[home]
    if may:
        assert (now_us < shards.trusted_until_us) == all(may.values())
        assert (now_us < shards.last_trusted_until_us) >= any(may.values())
