"""The clients of `fairway lab clients`, for people who use locust:

    pip install locust
    FAIRWAY_API_KEY=… locust --host http://127.0.0.1:8700

Each user hands in three jobs, looks at each once a second until it is done, and starts over. Locust
counts a request from when it is sent, not from when it was meant to be: under overload its figures
are kinder than the lab's (and its own threads are part of what is measured). Jobs of the type
`lab.score` need a worker: `fairway worker fairway.lab.jobs:app --pool medium=1000`. Without one no
user would ever end, so one job is handed in first, and the run ends with that sentence.
"""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.request
from typing import Any

from locust import HttpUser, constant, events, tag, task

JOBS_EACH = 3
JOB_SECONDS = float(os.environ.get("JOB_SECONDS", "10"))
FINAL = ("succeeded", "dead", "cancelled", "expired")
WORKER = "fairway worker fairway.lab.jobs:app --pool medium=1000"


class Client(HttpUser):
    """`--tags poll` or `--tags head` chooses one way of waiting; otherwise users do either."""

    wait_time = constant(0)

    def on_start(self) -> None:
        self.client.headers["Authorization"] = f"Bearer {os.environ['FAIRWAY_API_KEY']}"

    @tag("poll")
    @task
    def poll(self) -> None:
        for job in self._hand_in():
            while self._get(job)["state"] not in FINAL:
                time.sleep(1)

    @tag("head")
    @task
    def head(self) -> None:
        for job in self._hand_in():
            etag = ""
            while True:
                reply = self.client.head(
                    f"/v1/jobs/{job}", headers={"If-None-Match": etag}, name="HEAD /v1/jobs/{id}"
                )
                if reply.status_code == 200:
                    etag = reply.headers["ETag"]
                    if self._get(job)["state"] in FINAL:
                        break
                time.sleep(1)

    def _hand_in(self) -> list[str]:
        body = job(JOB_SECONDS)
        replies = [self.client.post("/v1/jobs", json=body) for _ in range(JOBS_EACH)]
        return [reply.json()["id"] for reply in replies if reply.status_code == 202]

    def _get(self, job: str) -> Any:
        return self.client.get(f"/v1/jobs/{job}", name="/v1/jobs/{id}").json()


@events.init.add_listener
def check(environment: Any, **_: Any) -> None:
    if "FAIRWAY_API_KEY" not in os.environ:
        raise SystemExit("Set FAIRWAY_API_KEY to a tenant's key (see client.json of `fairway up`).")


@events.test_start.add_listener
def begin(environment: Any, **_: Any) -> None:
    if why := why_nothing_would_end(environment.host):
        sys.stderr.write(f"{why}\n")
        environment.process_exit_code = 1
        environment.runner.quit()


def why_nothing_would_end(host: str) -> str:
    """Hands one job in; nothing to say if some worker runs such jobs."""
    asked = ask(host, "/v1/jobs", job(0.0))
    told = ask(host, f"/v1/jobs/{asked['id']}/explain")
    if told["reason"] != "no_worker":
        return ""
    ask(host, f"/v1/jobs/{asked['id']}", method="DELETE")
    return f"{told['detail']} No user would ever end. Start one first: {WORKER}"


def job(seconds: float) -> dict[str, Any]:
    return {"type": "lab.score", "pool": "medium", "payload": {"seconds": seconds}}


def ask(host: str, path: str, body: Any = None, method: str | None = None) -> Any:
    headers = {"Authorization": f"Bearer {os.environ['FAIRWAY_API_KEY']}"}
    data = None
    if body is not None:
        data, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
    asking = urllib.request.Request(host + path, data, headers, method=method)
    with urllib.request.urlopen(asking, timeout=30) as reply:
        return json.load(reply)
