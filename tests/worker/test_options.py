"""What a worker was told when it started is what it says of itself."""

from __future__ import annotations

from fairway.wire.exchange import TypeTerms
from fairway.worker.options import WorkerOptions


def test_a_hello_says_who_the_worker_is_and_keeps_its_secrets() -> None:
    options = WorkerOptions(
        target="app:app", name="one", urls=["http://a"], api_key="secret", slots={"short": 3},
        build="v7", labels=["gpu"], warm_keys=["image"],
    )  # fmt: skip
    hello = options.hello([TypeTerms(name="nap")], {"memory": "watched"})
    assert (hello.slots, hello.build, hello.limits) == ({"short": 3}, "v7", {"memory": "watched"})
    assert (hello.labels, hello.warm_keys) == (["gpu"], ["image"])
    assert [one.name for one in hello.types] == ["nap"]
    assert "secret" not in repr(hello)


def test_a_job_may_not_fill_the_machine_with_processes_unless_somebody_says_so() -> None:
    options = WorkerOptions(target="a:a", name="one", urls=[], api_key="", slots={})
    assert options.ceiling.processes == 512
    assert options.ceiling.memory_bytes is None
