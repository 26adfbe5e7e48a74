"""The clients of `fairway lab clients`, for people who use locust:

    pip install locust
    FAIRWAY_API_KEY=… locust --host http://127.0.0.1:8700

Each user hands in three jobs, looks at each once a second until it is done, and starts over. Locust
counts a request from when it is sent, not from when it was meant to be: under overload its figures
are kinder than the lab's (and its own threads are part of what is measured). Jobs of the type
`lab.score` need a worker: `fairway worker fairway.lab.jobs:app --pool medium=1000`.
"""

from __future__ import annotations

import os
import time
from typing import Any

from locust import HttpUser, constant, events, tag, task

JOBS_EACH = 3
JOB_SECONDS = float(os.environ.get("JOB_SECONDS", "10"))
FINAL = ("succeeded", "dead", "cancelled", "expired")


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
        body = {"type": "lab.score", "pool": "medium", "payload": {"seconds": JOB_SECONDS}}
        replies = [self.client.post("/v1/jobs", json=body) for _ in range(JOBS_EACH)]
        return [reply.json()["id"] for reply in replies if reply.status_code == 202]

    def _get(self, job: str) -> Any:
        return self.client.get(f"/v1/jobs/{job}", name="/v1/jobs/{id}").json()


@events.init.add_listener
def check(environment: Any, **_: Any) -> None:
    if "FAIRWAY_API_KEY" not in os.environ:
        raise SystemExit("Set FAIRWAY_API_KEY to a tenant's key (see client.json of `fairway up`).")
