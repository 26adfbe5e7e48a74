"""Every message and every route of workers x every kind of key and session x every kind of job.

The lists of fields and routes are made from the wire's structs and the route table: a new one that
no row here speaks of fails. A cell is what the caller hears and what changed; where nothing may
change, every fact about everybody's jobs is compared with what it was before.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import httpx2
import pytest
from msgspec import Struct
from tests.api.house import House
from tests.api.worker import HandWorker
from tests.api.worker_world import CALLERS, JOBS, Keys, World, make_keys, world_of

from fairway.api.routes import OPERATIONS
from fairway.wire import exchange as wire
from fairway.wire.storage import CheckpointSave

#: Of one job: the word for what was heard. Of no job in particular: the reply.
Say = Callable[[World, str], Awaitable[str]] | Callable[[World], Awaitable[httpx2.Response]]

#: Answers after which something may have changed; after any other, nothing has.
WRITES = {"recorded", "shown", "freed", "201"}


class Row(NamedTuple):
    """A message: which fields it is about, how it is said, what each caller hears of each job."""

    fields: str  # Struct.field, of which there may be many
    say: Say
    heard: dict[str, str]  # caller → an answer for each of JOBS, or one for all
    changes: str = ""  # of a message about no job in particular: the word for what it changed


# -- how things are said ---------------------------------------------------------------------------


def refusal(reply: httpx2.Response) -> str:
    """A word for an answer that took nothing of the call."""
    code = reply.json()["code"]
    words = {"UNAUTHENTICATED": "401", "SESSION_OF_ANOTHER_KEY": "not yours"}
    return words.get(code, str(reply.status_code))


async def told(caller: HandWorker, number: int, reply: httpx2.Response) -> str:
    """What became of a report, once that is known."""
    for _ in range(20):
        if reply.status_code != 200:
            return refusal(reply)
        said = reply.json()
        if number in said.get("recorded", []):
            return "recorded"
        if number in said.get("refused", []):
            return "refused"
        reply = await caller.post(wait_ms=200, draining=True)
    return "nothing"


def greeting(caller: HandWorker) -> dict[str, Any]:
    return {"types": [{"name": caller.type}], "slots": {"medium": 2}}


def report_of(world: World, what: str, **more: Any) -> dict[str, Any]:
    world.caller.numbers += 1
    said = {"n": world.caller.numbers, "kind": "succeeded", "ran_us": 5, "result": world.who}
    return said | world.said_of(what) | more


async def report(world: World, what: str) -> str:
    said = report_of(world, what)
    return await told(world.caller, said["n"], await world.caller.post(reports=[said]))


async def report_with_a_shard(world: World, what: str) -> str:
    """Of another shard than the job's: that is the worker's own note, and gives it no right."""
    said = report_of(world, what, shard=63)
    return await told(world.caller, said["n"], await world.caller.post(reports=[said]))


async def report_a_failure(world: World, what: str) -> str:
    more = {"kind": "failed", "failure": "permanent", "error": {"message": "no"}, "delay_ms": 5}
    said = report_of(world, what, **more)
    del said["result"]
    return await told(world.caller, said["n"], await world.caller.post(reports=[said]))


async def report_that_starts_jobs(world: World, what: str) -> str:
    at_ms = time.time_ns() // 1_000_000 + 1000
    trace = f"00-{'ab' * 16}-{'cd' * 8}-01"
    started = {"at_ms": at_ms, "jobs": [{"type": "never.run"}], "traceparent": trace}
    said = report_of(world, what, follow_ups=started)
    return await told(world.caller, said["n"], await world.caller.post(reports=[said]))


async def report_in_a_hello(world: World, what: str) -> str:
    """As a worker's next life does with what its last one finished."""
    said, hello = report_of(world, what), greeting(world.caller)
    reply = await world.caller.post(hello=hello, running=[], reports=[said])
    return await told(world.caller, said["n"], reply)


def kept_or_revoked(world: World, what: str, reply: httpx2.Response) -> str:
    if reply.status_code != 200:
        return refusal(reply)
    is_revoked = world.said_of(what)["job"] in reply.json().get("revoked", [])
    return "revoked" if is_revoked else "kept"


async def hold_in_a_hello(world: World, what: str) -> str:
    hello = greeting(world.caller)
    reply = await world.caller.post(hello=hello, running=[world.said_of(what)])
    return kept_or_revoked(world, what, reply)


async def name_all_that_runs(world: World, what: str) -> str:
    reply = await world.caller.post(running=[world.said_of(what)], running_is_all=True)
    return kept_or_revoked(world, what, reply)


async def tell_progress(world: World, what: str) -> str:
    holding = world.said_of(what) | {"progress": [what, world.who]}
    return await effect(world, what, "shown", running=[holding])


async def say_that_it_ended(world: World, what: str) -> str:
    return await effect(world, what, "freed", running=[world.said_of(what) | {"ended": True}])


async def effect(world: World, what: str, word: str, **message: Any) -> str:
    """The word, if the message changed anything about that job."""
    before = world.seen()[what.rstrip("!")]
    reply = await world.caller.post(**message)
    if reply.status_code != 200:
        return refusal(reply)
    return "nothing" if world.seen()[what.rstrip("!")] == before else word


# -- what is said of no job in particular ----------------------------------------------------------


async def say_goodbye(world: World) -> httpx2.Response:
    return await world.caller.post(goodbye=True)


async def drain(world: World) -> httpx2.Response:
    return await world.caller.post(draining=True)


async def tell_recycled(world: World) -> httpx2.Response:
    return await world.caller.post(recycled={"died": 3})


async def offer_slots(world: World) -> httpx2.Response:
    """As if others were to be served, and all owners were known."""
    offer = {"slots": {"medium": 0}, "elsewhere": {"medium": 2}, "is_counted": False}
    return await world.caller.post(offer=offer, owners=1 << 40)


async def call_by_number(world: World) -> httpx2.Response:
    """A call that counts itself far ahead, and waits: it silences nobody else."""
    return await world.caller.post(call=1 << 40, wait_ms=10)


async def declare_types(world: World) -> httpx2.Response:
    """Everything that a hello may say, of the very types that the jobs are of."""
    terms = {
        "attempts_max": 1, "timeouts_max": 1, "resources_max": 1, "dependencies_max": 1,
        "deliveries_max": 1, "pool": "long", "timeout_ms": 1, "dependency": "d", "warm_key": "w",
        "version": "v", "schema": {"type": "null"},
    }  # fmt: skip
    hello = {
        "types": [terms | {"name": name} for name in (world.holder.type, world.bobs.type)],
        "slots": {"medium": 0}, "build": "b", "limits": {"memory": "none"}, "labels": ["gpu"],
        "warm_keys": ["w"],
    }  # fmt: skip
    holdings = [world.said_of("held")] if world.caller is world.holder else []
    return await world.caller.post(hello=hello, running=holdings)


# -- what is heard ---------------------------------------------------------------------------------

SHUT_OUT = {"revoked": "401", "hijack": "not yours"}
NOTHING = "nothing"

#: In the order of JOBS: unknown! queued! ended! held! bob's! | ended bob's held
EXCHANGE: dict[str, Row] = {
    "a report": Row(
        "ExchangeRequest.session ExchangeRequest.reports"
        " Report.n Report.job Report.tenant Report.epoch Report.token Report.kind Report.ran_us"
        " Report.result",
        report,
        SHUT_OUT | {
            "shared": "refused refused refused refused refused recorded refused recorded",
            "own": "refused refused refused refused refused recorded refused recorded",
            "beside": "refused refused refused refused refused recorded refused refused",
            "other": "refused",
        },
    ),
    "a report that names a shard": Row(
        "Report.shard",
        report_with_a_shard,
        SHUT_OUT | {
            "shared": "refused refused refused refused refused recorded refused recorded",
            "own": "refused refused refused refused refused recorded refused recorded",
            "beside": "refused refused refused refused refused recorded refused refused",
            "other": "refused",
        },
    ),
    "a report of a failure": Row(
        "Report.failure Report.error Report.delay_ms",
        report_a_failure,
        SHUT_OUT | {
            "shared": "refused refused refused refused refused recorded refused recorded",
            "own": "refused refused refused refused refused recorded refused recorded",
            "beside": "refused refused refused refused refused recorded refused refused",
            "other": "refused",
        },
    ),
    "a report that starts jobs": Row(
        "Report.follow_ups FollowUps.at_ms FollowUps.jobs FollowUps.traceparent",
        report_that_starts_jobs,
        SHUT_OUT | {
            "shared": "refused refused refused refused refused recorded refused recorded",
            "own": "refused refused refused refused refused recorded refused recorded",
            "beside": "refused refused refused refused refused recorded refused refused",
            "other": "refused",
        },
    ),
    # The token of a lease that stands proves the right to report for who ran it: within the tenant.
    "a report in a hello": Row(
        "ExchangeRequest.hello",
        report_in_a_hello,
        SHUT_OUT | {
            "shared": "refused refused refused refused refused recorded recorded recorded",
            "own": "refused refused refused refused refused recorded refused recorded",
            "beside": "refused refused refused refused refused recorded refused recorded",
            "other": "refused refused refused refused refused refused recorded refused",
        },
    ),
    "a holding in a hello": Row(
        "ExchangeRequest.running Holding.job Holding.tenant Holding.epoch Holding.token",
        hold_in_a_hello,
        SHUT_OUT | {
            "shared": "revoked revoked revoked kept revoked revoked revoked kept",
            "own": "revoked revoked revoked kept revoked revoked revoked kept",
            "beside": "revoked",
            "other": "revoked",
        },
    ),
    "all that runs": Row(
        "ExchangeRequest.running_is_all",
        name_all_that_runs,
        SHUT_OUT | {
            "shared": "revoked revoked revoked kept revoked revoked revoked kept",
            "own": "revoked revoked revoked kept revoked revoked revoked kept",
            "beside": "revoked",
            "other": "revoked",
        },
    ),
    "progress": Row(
        "Holding.progress",
        tell_progress,
        SHUT_OUT | {
            "shared": "nothing nothing nothing nothing nothing nothing nothing shown",
            "own": "nothing nothing nothing nothing nothing nothing nothing shown",
            "beside": NOTHING,
            "other": NOTHING,
        },
    ),
    "the end of a run": Row(
        "Holding.ended",
        say_that_it_ended,
        SHUT_OUT | {
            "shared": "nothing nothing nothing nothing nothing nothing nothing freed",
            "own": "nothing nothing nothing nothing nothing nothing nothing freed",
            "beside": NOTHING,
            "other": NOTHING,
        },
    ),
    "draining": Row(
        "ExchangeRequest.draining",
        drain,
        SHUT_OUT | dict.fromkeys(list(CALLERS)[:4], NOTHING),
        "changed",
    ),
    "processes that were replaced": Row(
        "ExchangeRequest.recycled",
        tell_recycled,
        SHUT_OUT | dict.fromkeys(list(CALLERS)[:4], NOTHING),
        "changed",
    ),
    "an offer to one of several owners": Row(
        "ExchangeRequest.offer ExchangeRequest.owners"
        " SlotOffer.slots SlotOffer.elsewhere SlotOffer.is_counted",
        offer_slots,
        SHUT_OUT | dict.fromkeys(list(CALLERS)[:4], NOTHING),
        "changed",
    ),
    "a number and a wait": Row(
        "ExchangeRequest.call ExchangeRequest.wait_ms",
        call_by_number,
        SHUT_OUT | dict.fromkeys(list(CALLERS)[:4], NOTHING),
        "changed",
    ),
    # A shared worker speaks for its types, whoever's jobs they are; a tenant's own for its tenant.
    "a declaration of types": Row(
        "Hello.types Hello.slots Hello.build Hello.limits Hello.labels Hello.warm_keys"
        " TypeTerms.name TypeTerms.attempts_max TypeTerms.timeouts_max TypeTerms.resources_max"
        " TypeTerms.dependencies_max TypeTerms.deliveries_max TypeTerms.pool TypeTerms.timeout_ms"
        " TypeTerms.dependency TypeTerms.warm_key TypeTerms.version TypeTerms.schema",
        declare_types,
        SHUT_OUT | {
            "shared": "nothing nothing nothing asked asked nothing asked asked",
            "own": "nothing nothing nothing asked nothing nothing nothing asked",
            "beside": "nothing nothing nothing asked nothing nothing nothing asked",
            "other": "nothing nothing nothing nothing asked nothing asked nothing",
        },
        "asked",
    ),
    "goodbye": Row(
        "ExchangeRequest.goodbye",
        say_goodbye,
        SHUT_OUT | {
            "shared": "nothing nothing nothing lost nothing nothing nothing lost",
            "own": "nothing nothing nothing lost nothing nothing nothing lost",
            "beside": NOTHING,
            "other": NOTHING,
        },
        "lost",
    ),
}  # fmt: skip


# -- routes ----------------------------------------------------------------------------------------


async def save_checkpoint(world: World, what: str) -> str:
    body = world.said_of(what) | {"number": 1, "state": what}
    reply = await world.caller.client.post("/v1/workers/w/checkpoints", json=body)
    return "201" if reply.status_code == 201 else refusal(reply)


async def load_checkpoint(world: World, what: str) -> str:
    said = world.said_of(what)
    query = {"tenant": said["tenant"], "epoch": 1 << 62}
    path = f"/v1/workers/w/checkpoints/{said['job']}"
    reply = await world.caller.client.get(path, params=query)
    return "200" if reply.status_code == 200 else refusal(reply)


async def fetch_payload(world: World, what: str) -> str:
    said = world.said_of(what)
    path = f"/v1/workers/w/payloads/{said['job']}"
    reply = await world.caller.client.get(path, params={"tenant": said["tenant"]})
    return "200" if reply.status_code == 200 else refusal(reply)


async def keep_lines(world: World, what: str) -> str:
    line = {"n": 1, "at_ms": 1, "level": 20, "text": what}
    run = world.said_of(what) | {"attempt": 1, "lines": [line]}
    reply = await world.caller.client.post("/v1/workers/w/logs", json={"runs": [run]})
    if reply.status_code != 200:
        return refusal(reply)
    return "kept" if reply.json()["kept"] else "dropped"


async def list_workers(world: World, what: str) -> str:
    reply = await world.caller.client.get("/v1/workers")
    return "200" if reply.status_code == 200 else refusal(reply)


async def drain_a_worker(world: World, what: str) -> str:
    reply = await world.caller.client.post("/v1/workers/hand-1/drain")
    return "202" if reply.status_code == 202 else refusal(reply)


#: These name no session: a key of alice's is a key of alice's.
ALICES = {"own", "beside", "hijack"}
OPERATORS = dict.fromkeys(CALLERS, "403") | {"revoked": "401"}


def of_alice(words: str) -> dict[str, str]:
    return dict.fromkeys(ALICES, words) | {"revoked": "401"}


BY_ROUTE: dict[tuple[str, str], Row | None] = {
    ("POST", "/v1/workers/{name}/exchange"): None,  # above
    ("POST", "/v1/workers/{name}/checkpoints"): Row(
        "CheckpointSave.job CheckpointSave.tenant CheckpointSave.epoch CheckpointSave.token"
        " CheckpointSave.number CheckpointSave.state",
        save_checkpoint,
        of_alice("409 409 409 409 403 409 403 201") | {
            "shared": "409 409 409 409 409 409 201 201",
            "other": "403 403 403 403 409 403 201 403",
        },
    ),
    ("GET", "/v1/workers/{name}/checkpoints/{id}"): Row(
        "",
        load_checkpoint,
        of_alice("404 404 404 200 403 404 403 200") | {
            "shared": "404 404 404 200 200 404 200 200",
            "other": "403 403 403 403 200 403 200 403",
        },
    ),
    ("GET", "/v1/workers/{name}/payloads/{id}"): Row(
        "",
        fetch_payload,
        of_alice("404 200 200 200 403 200 403 200") | {
            "shared": "404 200 200 200 200 200 200 200",
            "other": "403 403 403 403 200 403 200 403",
        },
    ),
    ("POST", "/v1/workers/{name}/logs"): Row(
        "",
        keep_lines,
        of_alice("dropped dropped dropped dropped dropped kept 403 kept") | {
            "shared": "dropped dropped dropped dropped dropped kept kept kept",
            "other": "dropped dropped dropped dropped dropped 403 kept 403",
        },
    ),
    ("GET", "/v1/workers"): Row("", list_workers, OPERATORS),
    ("POST", "/v1/workers/{name}/drain"): Row("", drain_a_worker, OPERATORS),
}  # fmt: skip

ALL = EXCHANGE | {" ".join(route): row for route, row in BY_ROUTE.items() if row is not None}


# -- nothing is left out ---------------------------------------------------------------------------


def fields_of(*structs: type[Struct]) -> set[str]:
    return {
        f"{struct.__name__}.{field}" for struct in structs for field in struct.__struct_fields__
    }


def test_every_field_that_a_worker_may_send_has_a_row() -> None:
    said = fields_of(
        wire.ExchangeRequest, wire.Hello, wire.TypeTerms, wire.Holding, wire.Report,
        wire.FollowUps, wire.SlotOffer, CheckpointSave,
    )  # fmt: skip
    assert {field for row in ALL.values() for field in row.fields.split()} == said


def test_those_are_all_structs_of_a_workers_messages() -> None:
    """Whatever is defined beside them is what the server says."""
    here = {kind for kind in vars(wire).values() if isinstance(kind, type)}
    structs = {k for k in here if issubclass(k, Struct) and k.__module__ == wire.__name__}
    heard = {wire.ExchangeRequest, wire.Hello, wire.TypeTerms, wire.Holding, wire.Report}
    heard |= {wire.FollowUps, wire.SlotOffer}
    assert structs - heard == {wire.ExchangeReply, wire.Lease, wire.OwnerAt}


def test_every_route_of_workers_has_a_row() -> None:
    routes = {(op.method, op.path) for op in OPERATIONS if op.path.startswith("/v1/workers")}
    by_key = {(op.method, op.path) for op in OPERATIONS if "worker" in op.keys[:1]}
    assert routes | by_key == BY_ROUTE.keys()


@pytest.mark.parametrize("row", ALL.values(), ids=ALL)
def test_every_row_has_an_answer_for_everybody_about_everything(row: Row) -> None:
    assert row.heard.keys() == CALLERS.keys()
    assert {len(answers(words)) for words in row.heard.values()} == {len(JOBS)}


def answers(words: str) -> list[str]:
    """An answer for each of JOBS; "not yours" is one."""
    if words in ("not yours", "401", "403", "refused", "revoked", "nothing"):
        return [words] * len(JOBS)
    return words.split()


# -- the cells -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def keys(house: House) -> Keys:
    return make_keys(house)


@pytest.mark.parametrize("who", CALLERS)
@pytest.mark.parametrize("name", ALL)
async def test_what_is_heard_and_what_changes(
    house: House, keys: Keys, name: str, who: str
) -> None:
    row = ALL[name]
    async with world_of(house, keys, who) as world:
        if row.say is load_checkpoint:
            await save_some(world)
        heard = await (said_once(world, row) if row.changes else said_of_each(world, row))
    assert heard == dict(zip(JOBS, answers(row.heard[who]), strict=True))


async def said_of_each(world: World, row: Row) -> dict[str, str]:
    heard = {}
    for what in JOBS:
        before = world.seen()
        heard[what] = str(await row.say(world, what))  # type: ignore[call-arg]
        if heard[what] not in WRITES and world.seen() != before:
            heard[what] += ", and something changed"
    return heard


async def said_once(world: World, row: Row) -> dict[str, str]:
    before = world.seen()
    reply = await row.say(world)  # type: ignore[call-arg]
    assert isinstance(reply, httpx2.Response)
    after = world.seen()
    if reply.status_code == 200:
        changed = {what for what in after if after[what] != before[what]}
        return {what: row.changes if what.rstrip("!") in changed else NOTHING for what in JOBS}
    assert after == before
    return dict.fromkeys(JOBS, refusal(reply))


async def save_some(world: World) -> None:
    """What there is to load: of the two jobs that run."""
    for worker, what in ((world.holder, "held"), (world.bobs, "bob's")):
        body = world.said_of(what) | {"number": 1, "state": what}
        reply = await worker.client.post("/v1/workers/w/checkpoints", json=body)
        assert reply.status_code == 201, reply.text
