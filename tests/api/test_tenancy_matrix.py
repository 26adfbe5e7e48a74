"""Every route x every kind of key: what is answered follows from what the route declares.

Who is let in, and with which code the others are refused, is worked out from the published
document. What differs stands in a table of exceptions; a route about a tenant's thing that no row
speaks of fails. Those who show a session's cookie, and operators who act for a tenant, ask as well.
A thing of another tenant is answered like one that never was, to the letter. What workers say of
jobs has a matrix of its own (`test_worker_matrix.py`).
"""

from __future__ import annotations

import secrets
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import httpx2
import pytest
from tests.api.house import NO_TLS, House, problem
from tests.api.jobs.test_dead_letters import died
from tests.api.jobs.test_jobs import UNKNOWN, submit
from tests.api.jobs.test_schedules import put
from tests.api.worker import HandWorker

from fairway.api.docs.openapi import document
from fairway.api.endpoint import Endpoint
from fairway.api.routes import OPERATIONS
from fairway.core.ids import TenantId
from fairway.core.keys import PERMISSIONS
from fairway.runtime.random_ids import new_api_key
from fairway.services.backpressure.key_guesses import GUESSES_AT_ONCE
from fairway.services.platform import Platform
from fairway.store.registry.tenants import StoredKey, add_key

ASKS_PER_ADDRESS = GUESSES_AT_ONCE // 2
every_operation = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.name)


class Caller(NamedTuple):
    scope: str | None  # of its key, as the description calls it
    key: str | None
    tenant: str = ""
    may: tuple[str, ...] | None = None  # None: all that its scope can
    refusal: tuple[int, str] | None = None  # what it hears wherever a key is looked at
    acts_for: str = ""  # the tenant that an operator names
    is_held: bool = False  # that tenant is suspended
    cookie: tuple[str, str] | None = None  # of a session, with its token against forgery

    @property
    def headers(self) -> dict[str, str]:
        headers = {"authorization": f"Bearer {self.key}"} if self.key else {}
        if self.acts_for:
            headers["fairway-tenant"] = self.acts_for
        if self.cookie is not None:
            headers["cookie"] = f"fairway_session={self.cookie[0]}"
            headers["x-fairway-csrf"] = self.cookie[1]
        return headers


UNAUTHENTICATED, FORBIDDEN = (401, "UNAUTHENTICATED"), (403, "FORBIDDEN")
SUSPENDED = (403, "TENANT_SUSPENDED")

#: Who asks. A name that is not made below, or made and not named here, fails.
CALLERS = (
    "nobody", "a tenant", "an operator", "a worker", "a worker of a tenant", "malformed",
    "a checksum that is wrong", "never made", "revoked", "expired", "suspended",
    "a worker of a suspended tenant", "of a deleted tenant", "a tenant's that only reads",
    "an operator's that only reads", "an operator for a tenant", "an operator for a suspended one",
    "a reading operator for a tenant", "a tenant by cookie", "an operator by cookie",
)  # fmt: skip


def make_callers(house: House) -> dict[str, Caller]:
    name, key = house.new_tenant()
    of_worker = house.new_key({"scope": "worker", "tenant": name})
    reads = {"permissions": ["read"]}
    held, held_key = house.new_tenant()
    held_worker = house.new_key({"scope": "worker", "tenant": held})
    gone, gone_key = house.new_tenant()
    revoked = house.new_key({"tenant": name})
    headers = {"authorization": f"Bearer {house.operator_key}"}
    with httpx2.Client(base_url=house.url, headers=headers, verify=NO_TLS) as operator:
        assert operator.delete(f"/v1/keys/{revoked.split('_')[2]}").status_code == 204
        said = operator.post(f"/v1/tenants/{held}/suspend", json={"reason": "An open invoice."})
        assert said.status_code == 200, said.text
        assert operator.delete(f"/v1/tenants/{gone}?suspend=true").status_code == 200
    reader = house.new_key(reads | {"scope": "operator"})
    return {
        "nobody": Caller(None, None),
        "a tenant": Caller("tenant", key),
        "an operator": Caller("operator", house.operator_key),
        "a worker": Caller("worker", house.new_key({"scope": "worker"})),
        "a worker of a tenant": Caller("worker", of_worker, name),
        "malformed": Caller("tenant", "fw_tenant_a_b", refusal=UNAUTHENTICATED),
        "a checksum that is wrong": Caller("tenant", wrong(key), refusal=UNAUTHENTICATED),
        "never made": Caller("tenant", new_api_key("tenant").text, refusal=UNAUTHENTICATED),
        "revoked": Caller("tenant", revoked, refusal=UNAUTHENTICATED),
        "expired": Caller("tenant", expired_key(house, name), refusal=UNAUTHENTICATED),
        "suspended": Caller("tenant", held_key, refusal=SUSPENDED),
        "a worker of a suspended tenant": Caller("worker", held_worker, held, refusal=SUSPENDED),
        "of a deleted tenant": Caller("tenant", gone_key, refusal=UNAUTHENTICATED),
        "a tenant's that only reads": Caller(
            "tenant", house.new_key(reads | {"tenant": name}), may=("read",)
        ),
        "an operator's that only reads": Caller("operator", reader, may=("read",)),
        "an operator for a tenant": Caller("operator", house.operator_key, acts_for=name),
        "an operator for a suspended one": Caller(
            "operator", house.operator_key, acts_for=held, is_held=True
        ),
        "a reading operator for a tenant": Caller("operator", reader, may=("read",), acts_for=name),
        "a tenant by cookie": Caller("tenant", None, cookie=signed_in(house, key)),
        "an operator by cookie": Caller(
            "operator", None, cookie=signed_in(house, house.operator_key)
        ),
    }


def signed_in(house: House, key: str) -> tuple[str, str]:
    with httpx2.Client(base_url=house.url, verify=NO_TLS) as browser:
        reply = browser.post("/session", json={"key": key})
        return reply.cookies["fairway_session"], str(reply.json()["csrf"])


def wrong(key: str) -> str:
    return key[:-1] + ("0" if key[-1] != "0" else "1")


def expired_key(house: House, tenant: str) -> str:
    """A key that ran out an hour ago: nobody can ask for one."""
    key, past = new_api_key("tenant"), datetime.now(UTC) - timedelta(hours=1)

    async def add(platform: Platform) -> None:
        owner: TenantId = platform.directory.tenant_ids[tenant]
        stored = StoredKey(key.id, key.scope, owner, key.secret_hash)
        async with platform.database.background() as connection:
            await add_key(connection, stored, past)

    house.inside(add)
    return key.text


class Line:
    """Each caller from an address of its own: wrong keys are counted by address.

    There are more operations than an address may guess at once: it moves to the next in time.
    """

    def __init__(self, house: House, callers: dict[str, Caller]) -> None:
        self._house = house
        self.callers = callers
        self._numbers = {name: number for number, name in enumerate(callers, start=1)}
        self._asked = Counter[str]()
        self.clients = {name: self._client(name) for name in callers}

    def _client(self, name: str) -> httpx2.Client:
        address = f"127.0.{9 + self._asked[name] // ASKS_PER_ADDRESS}.{self._numbers[name]}"
        return httpx2.Client(
            base_url=self._house.url,
            timeout=30,
            transport=httpx2.HTTPTransport(verify=NO_TLS, local_address=address),
        )

    def ask(self, operation: Endpoint, name: str) -> httpx2.Response:
        self._asked[name] += 1
        if self._asked[name] % ASKS_PER_ADDRESS == 0:
            self.clients[name].close()
            self.clients[name] = self._client(name)
        return asked(self.clients[name], operation, self.callers[name])


@pytest.fixture(scope="module")
def line(house: House) -> Iterator[Line]:
    line = Line(house, make_callers(house))
    yield line
    for client in line.clients.values():
        client.close()


def asked(line: httpx2.Client, operation: Endpoint, caller: Caller) -> httpx2.Response:
    """As in its example, about things that are not there, and without a body: nothing changes."""
    path, query = operation.path, {}
    for parameter in operation.parameters:
        if parameter.place == "path":
            path = path.replace(f"{{{parameter.name}}}", parameter.example)
        elif parameter.name == "tenant" and caller.tenant:  # a worker speaks for its own tenant
            query["tenant"] = caller.tenant
    with line.stream(operation.method, path, params=query, headers=caller.headers) as reply:
        if not reply.headers.get("content-type", "").startswith("text/event-stream"):
            reply.read()  # a stream of events has no end
    return reply


def declared(operation: Endpoint) -> set[str | None]:
    """Scopes by the published document; None where no key is needed."""
    told = document()["paths"][operation.path][operation.method.lower()]["security"]
    return {name for scheme in told for name in scheme or (None,)} if told else {None}


def expected(
    operation: Endpoint, scopes: set[str | None], caller: Caller
) -> tuple[int, str] | None:
    """How a caller is refused; None: it is let in, and hears what there is to hear."""
    if scopes == {None}:
        return None  # no key is looked at
    if caller.cookie is not None:
        return expected_by_cookie(operation, scopes, caller)
    if caller.key is None:
        return None if None in scopes else UNAUTHENTICATED
    if caller.refusal is not None:
        return caller.refusal  # also where none is needed: who sends one means to be known by it
    if None in scopes:
        return None
    return expected_by_scope(operation, scopes, caller)


def expected_by_scope(
    operation: Endpoint, scopes: set[str | None], caller: Caller
) -> tuple[int, str] | None:
    may = PERMISSIONS[caller.scope or ""] if caller.may is None else caller.may
    acts = bool(caller.acts_for) and "tenant" in scopes and caller.scope not in scopes
    if not (caller.scope in scopes or acts) or operation.permission not in may:
        return FORBIDDEN
    is_held = acts and caller.is_held and operation.permission != "read"
    return SUSPENDED if is_held else None


def expected_by_cookie(
    operation: Endpoint, scopes: set[str | None], caller: Caller
) -> tuple[int, str] | None:
    """It is looked at where a key is needed, and never where only workers ask."""
    if None in scopes:
        return None
    if scopes == {"worker"}:
        return UNAUTHENTICATED
    if operation.call == "POST /session/links":
        return FORBIDDEN  # it would outlive itself
    return expected_by_scope(operation, scopes, caller)


def test_every_caller_asks(line: Line) -> None:
    assert tuple(line.callers) == CALLERS


@every_operation
def test_each_kind_of_key(line: Line, operation: Endpoint) -> None:
    scopes = declared(operation)
    for name, caller in line.callers.items():
        reply, refusal = line.ask(operation, name), expected(operation, scopes, caller)
        if refusal is None:
            assert reply.status_code not in (401, 403), (name, reply.text)
            assert reply.status_code < 500, (name, reply.text)
        elif operation.method == "HEAD":
            assert reply.status_code == refusal[0], name
        else:
            told = problem(reply, *refusal)
            assert ("An open invoice." in told["detail"]) == (refusal == SUSPENDED), name


# -- things of another tenant ----------------------------------------------------------------------

#: The beginning of a path → which thing of a tenant it is about.
THINGS = {
    "/v1/jobs/{id}": "job",
    "/v1/flows/{id}": "flow",
    "/v1/schedules/{name}": "schedule",
    "/v1/bulk-actions/{id}": "action",
    "/v1/webhooks/{id}/deliveries/{delivery}": "delivery",
    "/v1/webhooks/{id}": "webhook",
    "/v1/dead-letters/{id}": "dead letter",
    "/v1/quarantines/{type}": "type",
    "/v1/workers/{name}/checkpoints/{id}": "job",
    "/v1/workers/{name}/payloads/{id}": "job",
}
HOOK = {"url": "https://1.1.1.1/hook", "enabled": False}
#: Routes whose path names no thing that another tenant could have, and why.
EXCEPTIONS = {
    "PUT /v1/schedules/{name}": "names are a tenant's own: it makes one of the same name",
    "GET /v1/statements/{month}": "a tenant's own months",
    "GET /v1/autoscale/{pool}": "the platform's own workers; a tenant's see none",
    "POST /v1/workers/{name}/exchange": "a worker's own name; jobs: `test_worker_matrix.py`",
    "POST /v1/workers/{name}/checkpoints": "as above",
    "POST /v1/workers/{name}/logs": "as above",
}
NOT_THERE = {
    "job": UNKNOWN,
    "flow": UNKNOWN,
    "dead letter": UNKNOWN,
    "action": UNKNOWN,
    "webhook": str(uuid.UUID(int=1)),
    "schedule": "no-such",
    "type": "no.such",
}


def thing_of(operation: Endpoint) -> str | None:
    if operation.call in EXCEPTIONS:
        return None
    found = [kind for start, kind in THINGS.items() if operation.path.startswith(start)]
    return found[0] if found else None


OF_TENANTS = [
    one for one in OPERATIONS if "{" in one.path and {"tenant", "worker"} & {*one.keys}
]  # fmt: skip
ABOUT_THINGS = [one for one in OF_TENANTS if thing_of(one) is not None]


def test_every_route_about_a_tenants_thing_has_a_row() -> None:
    assert [one.call for one in OF_TENANTS if one not in ABOUT_THINGS] == [
        one.call for one in OPERATIONS if one.call in EXCEPTIONS
    ]
    used = {start for start in THINGS if any(one.path.startswith(start) for one in ABOUT_THINGS)}
    assert used == THINGS.keys()


class Two(NamedTuple):
    """What alice has, and bob, who asks about it."""

    things: dict[str, str]
    alice: httpx2.AsyncClient
    bob: httpx2.AsyncClient
    bobs_worker: httpx2.AsyncClient
    operator: httpx2.AsyncClient  # who acts for bob
    bobs_name: str


@asynccontextmanager
async def two_tenants(house: House, worker: HandWorker) -> AsyncIterator[Two]:
    (_, alices), (name, bobs) = house.new_tenant(), house.new_tenant()
    key = house.new_key({"scope": "worker", "tenant": name})
    async with (
        house.caller(alices) as alice,
        house.caller(bobs) as bob,
        house.caller(key) as bobs_worker,
        house.caller(house.operator_key) as operator,
    ):
        operator.headers["fairway-tenant"] = name
        things = await things_of(house, alice, worker)
        yield Two(things, alice, bob, bobs_worker, operator, name)


async def things_of(house: House, alice: httpx2.AsyncClient, worker: HandWorker) -> dict[str, str]:
    (dead,) = await died(alice, worker)
    slowly = {"act": "replay", "filter": {"type": worker.type}, "per_second": 1}
    action = await alice.post("/v1/bulk-actions", json=slowly)
    assert action.status_code == 202, action.text
    await worker.run(kind="failed", failure="permanent", error={"message": "no", "stack": ""})
    made = await alice.post("/v1/flows", json={"kind": "group", "jobs": [{"type": "never.run"}]})
    assert made.status_code == 202, made.text
    hook = (await alice.post("/v1/webhooks", json=HOOK)).json()["id"]
    schedule = f"s-{secrets.token_hex(4)}"
    await put(alice, f"/v1/schedules/{schedule}")
    return {
        "job": (await submit(alice)).rpartition("/")[2],
        "dead letter": dead,
        "action": action.headers["location"].rpartition("/")[2],
        "flow": made.json()["id"],
        "webhook": hook,
        "delivery": house.waiting_test(hook),
        "schedule": schedule,
        "type": worker.type,
    }


async def test_a_thing_of_another_tenant_is_answered_like_one_that_never_was(
    house: House, worker: HandWorker
) -> None:
    async with two_tenants(house, worker) as two:
        for operation in ABOUT_THINGS:
            kind = str(thing_of(operation))
            missing = NOT_THERE.get(kind, two.things[kind] + "7")  # a delivery that never was
            for asker in askers(two, operation):
                theirs = await answer(two, asker, operation, two.things[kind])
                assert theirs == await answer(two, asker, operation, missing), operation.call
                assert theirs[0] == 404, (operation.call, theirs)
        await unharmed(two)


def askers(two: Two, operation: Endpoint) -> list[httpx2.AsyncClient]:
    """Whoever may ask in bob's name."""
    if "worker" in operation.keys:
        return [two.bobs_worker]
    acts = operation.lets_operators_act and operation.permission in PERMISSIONS["operator"]
    return [two.bob, two.operator] if acts else [two.bob]


async def answer(
    two: Two, asker: httpx2.AsyncClient, operation: Endpoint, thing: str
) -> tuple[int, Any]:
    """Status and body, but for what tells one request or one id from another."""
    is_workers = "worker" in operation.keys
    *_, last = [one.name for one in operation.parameters if one.place == "path"]
    path = operation.path.replace(f"{{{last}}}", thing).replace("{name}", "hand-1")
    path = path.replace("{id}", two.things["webhook"])  # whose delivery it is
    named = {one.name for one in operation.parameters}
    query = {"tenant": two.bobs_name, "epoch": "7"} if is_workers else {}
    query = {name: value for name, value in query.items() if name in named}
    reply = await asker.request(operation.method, path, params=query, json=operation.body_example)
    if operation.method == "HEAD":
        return reply.status_code, None
    body = {name: value for name, value in reply.json().items() if name != "request_id"}
    return reply.status_code, str(body).replace(thing, "<it>")


async def unharmed(two: Two) -> None:
    """Whatever was asked of them, they are as they were."""

    async def seen(start: str, kind: str) -> dict[str, Any]:
        found: dict[str, Any] = (await two.alice.get(f"{start}/{two.things[kind]}")).json()
        return found

    job, flow = await seen("/v1/jobs", "job"), await seen("/v1/flows", "flow")
    assert (job["state"], job["execute_at"]) == ("queued", None)
    assert (flow["state"], flow["total"]) == ("running", 1)
    assert (await seen("/v1/schedules", "schedule"))["paused"] is False
    assert (await seen("/v1/webhooks", "webhook"))["url"] == HOOK["url"]
    assert (await seen("/v1/jobs", "dead letter"))["state"] == "dead"
