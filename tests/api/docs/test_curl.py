"""Every operation as a curl command that runs as it stands."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import httpx2
import pytest
from tests.api.docs.test_pages import named
from tests.api.house import House

from fairway.api.docs.openapi import document
from fairway.api.endpoint import Endpoint
from fairway.api.operators import tenant_states
from fairway.api.routes import OPERATIONS

#: What an example gets that is about nobody's lease, or names a receiver or key that is not there.
OF_EXAMPLES = {"saveCheckpoint": 409, "loadCheckpoint": 404, "getLeasePayload": 404,
               "getResult": 404, "addFlowJobs": 409, "openEventSocket": 426,
               "deleteTenant": 409, "restoreTenant": 409, "addWebhook": 422,
               "signIn": 401, "tryWebhook": 409, "addAlarmWebhook": 422,
               "tryAlarmWebhook": 409, "moveTenant": 409, "cancelMove": 409}  # fmt: skip


#: Their examples name a dead letter, an action or a quarantine that a fresh server does not have.
OF_WHAT_IS_NOT_THERE = {
    "getDeadLetter", "replayDeadLetter", "discardDeadLetter", "getBulkAction",
    "abortBulkAction", "liftQuarantine", "dropPrice", "moveTenant",
    "listRegions", "getHome", "setHome", "failOverRegion", "failBackRegion",  # there is one region
}  # fmt: skip


@pytest.fixture(scope="module")
def shell(house: House) -> Iterator[dict[str, str]]:
    """The variables that the page tells people to set, and the ids of earlier replies."""
    name, key = house.new_tenant()
    headers = {"authorization": f"Bearer {key}"}
    job = httpx2.post(f"{house.url}/v1/jobs", json={"type": "doc.example"}, headers=headers).json()
    httpx2.delete(f"{house.url}/v1/jobs/{job['id']}", headers=headers)
    wanted = {"kind": "group", "jobs": [{"type": "doc.example"}], "more": True}
    flow = httpx2.post(f"{house.url}/v1/flows", json=wanted, headers=headers).json()
    quiet = {"url": "https://93.184.216.34/", "enabled": False}
    webhook = httpx2.post(f"{house.url}/v1/webhooks", json=quiet, headers=headers).json()
    operator = {"authorization": f"Bearer {house.operator_key}"}
    alarms = httpx2.post(f"{house.url}/v1/alarms/webhooks", json=quiet, headers=operator).json()
    spare = house.new_key({"scope": "tenant", "tenant": name})
    yield {
        "FAIRWAY_URL": house.url,
        "FAIRWAY_API_KEY": key,
        "FAIRWAY_WORKER_KEY": house.new_key({"scope": "worker"}),
        "FAIRWAY_OPERATOR_KEY": house.operator_key,
        "JOB": job["id"],
        "ACTION": job["id"],
        "FLOW": flow["id"],
        "WEBHOOK": webhook["id"],
        "ALARM_WEBHOOK": alarms["id"],
        "DELIVERY": house.waiting_test(webhook["id"]),
        "TENANT": name,
        "SPARE_TENANT": house.new_tenant()[0],
        "KEY_ID": spare.split("_")[2],
    }
    # An example reserves slots; kept, nobody else would get any on a server as small as this one.
    path = f"{house.url}/v1/tenants/{name}"
    assert httpx2.patch(path, json={"reserved": {}}, headers=operator).status_code == 200


@pytest.mark.parametrize("operation", OPERATIONS, ids=named)
def test_every_curl_example_runs(operation: Endpoint, shell: dict[str, str]) -> None:
    if operation.handler.__module__ == tenant_states.__name__:
        shell = shell | {"TENANT": shell["SPARE_TENANT"]}  # others are asked with the tenant's key
    node = document()["paths"][operation.path][operation.method.lower()]
    command = node["x-codeSamples"][0]["source"].replace(
        "curl ", "curl -s -w '\\n%{http_code}' ", 1
    )
    if operation.name in ("followEvents", "followOverview"):  # they have no end of their own
        command = command.replace("curl ", "curl -m 1 ", 1) + " || test $? = 28"
    if operation.name == "splitShards":  # they never become fewer, and this house is shared
        command = command.replace('{"to":64}', '{"to":1}')
    ran = subprocess.run(
        ["bash", "-euc", command], env=shell, capture_output=True, text=True, timeout=20, check=True
    )
    status = int(ran.stdout.rsplit("\n", 1)[1])
    expected = {reply.status for reply in operation.replies}
    if operation.name in ("cancelJob", "rescheduleJob"):
        expected.add(409)  # the example job has ended already
    if operation.name in OF_WHAT_IS_NOT_THERE:
        expected.add(404)
    if operation.name == "drainWorker":
        expected.add(404)  # the example worker has not said hello, or has left
    expected.add(OF_EXAMPLES.get(operation.name, 0))
    assert status in expected, ran.stdout
