"""Rounds of probes: tenants in turn, and one that fails stops no other."""

from __future__ import annotations

import asyncio

import pytest
from tests.services.platform_room import SHORT, add_tenant, freeze, new, submit, until

from fairway.core.backlog.streams import StreamKey
from fairway.core.failure.circuits import Circuit, CircuitRecord, CircuitState
from fairway.core.failure.quarantine import Quarantine
from fairway.core.ids import ShardId, TypeId, make_job_id
from fairway.core.tenant import Tenant
from fairway.runtime import loops
from fairway.services.failure.failure_policy import RestraintChange, TypeKey
from fairway.services.platform import Platform
from fairway.services.restraints import probes
from fairway.services.restraints.restraints import hold_streams
from fairway.store import restraints as store
from fairway.store.restraints import CircuitKey

LONG_REST_US = 300_000_000
NO_SUCH_PRIORITY = 1 << 20  # the store has no number for it: a read of such a stream is an error


async def due_circuits(platform: Platform, tenant: Tenant, *types: str) -> list[Circuit]:
    """Circuits of these types that are open and due; a job waits behind each."""
    await submit(platform, tenant, *[new(name) for name in types])
    failure_policy, circuits = platform.dispatcher.failure_policy, list[Circuit]()
    for name in types:
        circuit = Circuit(failure_policy.circuit_settings)
        circuit.restore(CircuitRecord(LONG_REST_US, 0), platform.clock.now_us())
        key = TypeKey(tenant.id, platform.directory.type_ids[name])
        failure_policy.circuits.put(*key, "stripe", circuit)
        circuits.append(circuit)
    hold_streams(failure_policy, platform.holds, [tenant.id])
    return circuits


def out(platform: Platform, tenant: Tenant) -> int:
    """Jobs of a tenant that may start, though all of its streams are held."""
    return platform.dispatcher.backlog.counts.ready(SHORT, tenant.id)


async def test_a_probe_that_fails_stops_no_other_and_comes_again_soon(
    platform: Platform, tenant: Tenant
) -> None:
    await freeze(platform)
    other = await add_tenant(platform, "other")
    (broken,) = await due_circuits(platform, tenant, "pay")
    (whole,) = await due_circuits(platform, other, "pay")
    key = StreamKey(tenant.id, SHORT, platform.directory.type_ids["pay"], NO_SUCH_PRIORITY)
    platform.dispatcher.backlog.noticed(key, make_job_id(ShardId(0), 0, 1, 0))
    await platform.restraints.run_once(0)
    assert (out(platform, tenant), out(platform, other)) == (0, 1)
    assert whole.state is broken.state is CircuitState.HALF_OPEN
    now_us, settings = platform.clock.now_us(), platform.dispatcher.failure_policy.circuit_settings
    assert broken.is_due(now_us + settings.rest_us), "nothing was proved: no long rest for that"
    assert not whole.is_due(now_us + settings.rest_us)
    streams = platform.dispatcher.backlog.counts.streams_of(tenant.id, [SHORT])
    assert not any(stream.reading for stream in streams), "they can be read again"


async def test_many_circuits_of_one_tenant_do_not_hold_up_anothers_probe(
    platform: Platform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probes, "ROUND_US", -1)  # a round is over after one probe
    await freeze(platform)
    other = await add_tenant(platform, "other")
    many = await due_circuits(platform, tenant, *[f"pay-{number}" for number in range(20)])
    (one,) = await due_circuits(platform, other, "pay")
    await platform.restraints.run_once(0)
    assert (out(platform, tenant), out(platform, other)) == (1, 0)
    waiting = [circuit for circuit in many if circuit.state is CircuitState.OPEN]
    assert len(waiting) == 19, "what had no turn has not begun"
    await platform.restraints.run_once(0)
    assert (out(platform, tenant), out(platform, other)) == (1, 1)
    assert one.state is CircuitState.HALF_OPEN
    for _ in range(19):
        await platform.restraints.run_once(0)
    assert (out(platform, tenant), out(platform, other)) == (20, 1)


async def test_in_one_round_everybody_has_a_turn(platform: Platform, tenant: Tenant) -> None:
    await freeze(platform)
    other = await add_tenant(platform, "other")
    many = await due_circuits(platform, tenant, *[f"pay-{number}" for number in range(5)])
    many += await due_circuits(platform, other, "pay")
    await platform.restraints.run_once(0)
    assert (out(platform, tenant), out(platform, other)) == (5, 1)
    assert {circuit.state for circuit in many} == {CircuitState.HALF_OPEN}


async def test_what_ends_here_while_others_news_are_gone_through_stays_so(
    platform: Platform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are rests in between: what was read before is not put into force over newer news."""
    monkeypatch.setattr(loops, "PART_SECONDS", -1.0)
    monkeypatch.setattr(loops, "SLICE_REST_SECONDS", 0.05)
    await freeze(platform)
    failure_policy, far = (
        platform.dispatcher.failure_policy,
        CircuitRecord(LONG_REST_US, LONG_REST_US),
    )
    first, second = [CircuitKey(tenant.id, TypeId(7), name) for name in ("a", "b")]
    place = TypeKey(tenant.id, TypeId(7))
    async with platform.database.background() as connection:
        await store.open_circuit(connection, first, far)
        await store.impose_quarantine(connection, *place)
    await platform.restraints.run_once(0)
    quarantine = failure_policy.quarantines[place]
    assert isinstance(quarantine, Quarantine)
    assert quarantine.is_on
    async with platform.database.background() as connection:
        await store.close_circuit(connection, first)
        await store.open_circuit(connection, second, far)
    reading = asyncio.create_task(platform.restraints.run_once(0))
    await until(lambda: "b" in failure_policy.circuits.of_type(*place))
    quarantine.lift()
    failure_policy.news.append(RestraintChange("quarantine", *place, is_on=False))
    await reading
    assert not quarantine.is_on
    assert failure_policy.circuits.of_type(*place)["b"].is_open
    assert "a" not in failure_policy.circuits.of_type(*place), "it was closed elsewhere"
    await platform.restraints.run_once(0)
    async with platform.database.background() as connection:
        assert await store.all_quarantines(connection) == {}
    assert not quarantine.is_on
