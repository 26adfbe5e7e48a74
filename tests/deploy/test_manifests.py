"""What is in `deploy/` would start: schemas hold, names lead somewhere, flags exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.deploy.schemas import VERSIONS, compose_complaints, kubernetes_complaints

from fairway.cli.main import app
from fairway.runtime.settings import load

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
#: Of kinds that Kubernetes itself does not know.
OTHERS = ("keda.sh/", "kustomize.config.k8s.io/")
#: Made by hand, as settings.yaml says.
SECRETS = {"fairway-database", "fairway-worker"}


@cache
def things() -> list[dict[str, Any]]:
    return [
        thing
        for path in sorted(KUBERNETES.glob("*.yaml"))
        for thing in yaml.load_all(path.read_text(), yaml.CSafeLoader)
    ]


def named(kind: str) -> dict[str, dict[str, Any]]:
    return {one["metadata"]["name"]: one for one in things() if one["kind"] == kind}


def pods() -> dict[str, dict[str, Any]]:
    """The spec of each pod that is made, by the name of what makes it."""
    makers = {**named("Deployment"), **named("Job")}
    return {name: one["spec"]["template"]["spec"] for name, one in makers.items()}


def values_of(thing: Any, key: str) -> Iterator[Any]:
    """All values of this key, however deep."""
    if isinstance(thing, dict):
        for name, value in thing.items():
            if name == key:
                yield value
            yield from values_of(value, key)
    elif isinstance(thing, list):
        for one in thing:
            yield from values_of(one, key)


def must_parse(words: list[str]) -> None:
    """These are words that `fairway` takes."""
    app.parse_args(words, exit_on_error=False, print_error=False)


def grace_of(words: list[str]) -> float:
    return float(words[words.index("--grace") + 1])


# -- Kubernetes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "version", [VERSIONS[0], pytest.param(VERSIONS[1], marks=pytest.mark.slow)]
)
def test_kubernetes_takes_every_manifest(version: str) -> None:
    ours = [one for one in things() if not one["apiVersion"].startswith(OTHERS)]
    assert len(ours) >= 15
    found = {one["metadata"]["name"]: list(kubernetes_complaints(one, version)) for one in ours}
    assert {name: complaints for name, complaints in found.items() if complaints} == {}


def test_kustomize_finds_all_files_and_no_other() -> None:
    (kustomization,) = (one for one in things() if one["kind"] == "Kustomization")
    files = {path.name for path in KUBERNETES.glob("*.yaml")} - {"kustomization.yaml"}
    assert set(kustomization["resources"]) == files
    images = {image["name"] for image in kustomization["images"]}
    assert {c["image"] for pod in pods().values() for c in pod["containers"]} == images


def test_selectors_find_what_is_made() -> None:
    made = {
        n: one["spec"]["template"]["metadata"]["labels"] for n, one in named("Deployment").items()
    }
    for name, one in named("Deployment").items():
        assert one["spec"]["selector"]["matchLabels"] == made[name]
    for name, one in named("PodDisruptionBudget").items():
        assert one["spec"]["selector"]["matchLabels"] == made[name]
    (service,) = named("Service").values()
    assert service["spec"]["selector"] == made["fairway-server"]
    everybody = [*made.values(), named("Job")["fairway-migrate"]["metadata"]["labels"]]
    for selector in values_of(list(named("NetworkPolicy").values()), "podSelector"):
        wanted = selector.get("matchLabels", {})
        assert any(wanted.items() <= labels.items() for labels in everybody), wanted


def test_references_lead_somewhere() -> None:
    maps, accounts = named("ConfigMap"), named("ServiceAccount")
    for pod in pods().values():
        assert pod["serviceAccountName"] in accounts
        assert {one["name"] for one in values_of(pod, "configMapRef")} <= set(maps)
        assert {one["name"] for one in values_of(pod, "secretRef")} <= SECRETS
        mounts = {m["name"] for c in pod["containers"] for m in c.get("volumeMounts", [])}
        assert mounts == {volume["name"] for volume in pod.get("volumes", [])}


def test_containers_have_no_rights_and_a_bound() -> None:
    for pod in pods().values():
        assert pod["securityContext"]["runAsNonRoot"]
        for container in pod["containers"]:
            rights = container["securityContext"]
            assert rights["capabilities"] == {"drop": ["ALL"]}
            assert rights["readOnlyRootFilesystem"]
            assert not rights["allowPrivilegeEscalation"]
            assert container["resources"]["limits"]["memory"]


def test_words_and_settings_of_pods_are_known() -> None:
    for name, pod in pods().items():
        for container in pod["containers"]:
            must_parse(container["args"])
            if "--grace" in container["args"]:
                assert pod["terminationGracePeriodSeconds"] >= grace_of(container["args"]) + 30, (
                    name
                )
    data = named("ConfigMap")["fairway-server"]["data"]
    assert load(data).check() == []


def test_keda_asks_the_platform_how_many_there_should_be() -> None:
    scaled, workers = named("ScaledObject"), set(named("Deployment")) - {"fairway-server"}
    assert set(scaled) == workers
    for name, one in scaled.items():
        pool = name.removeprefix("fairway-worker-")
        assert one["spec"]["scaleTargetRef"]["name"] == name
        assert "replicas" not in named("Deployment")[name]["spec"], "who else decides?"
        (trigger,) = one["spec"]["triggers"]
        assert trigger["type"] == "metrics-api"
        asked = trigger["metadata"]
        assert asked["url"].endswith(f"//fairway-server.fairway.svc:8700/v1/autoscale/{pool}")
        assert (asked["valueLocation"], asked["targetValue"]) == ("wanted_workers", "1")
        key = named("TriggerAuthentication")[trigger["authenticationRef"]["name"]]
        (secret,) = key["spec"]["secretTargetRef"]
        assert (secret["name"], secret["key"]) == ("fairway-worker", "FAIRWAY_API_KEY"), (
            "an operator's key in the cluster could change everything, and this only reads"
        )
        spec = one["spec"]
        assert 0 < spec["minReplicaCount"] < spec["maxReplicaCount"]


# -- Compose ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose/compose.yaml").read_text())
    return found


def test_compose_takes_the_file(compose: dict[str, Any]) -> None:
    assert compose_complaints(compose) == []


def test_services_of_the_compose_file_would_start(compose: dict[str, Any]) -> None:
    services = compose["services"]
    for name, one in services.items():
        assert set(one.get("depends_on", {})) <= set(services)
        assert set(one.get("networks", [])) <= set(compose["networks"])
        volumes = {volume.split(":")[0] for volume in one.get("volumes", [])}
        assert volumes <= set(compose["volumes"])
        if name != "postgres":
            words = [
                re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", w) for w in one.get("command", ["server"])
            ]
            must_parse(words)
        if name.startswith("worker"):
            assert seconds(one["stop_grace_period"]) >= grace_of(words) + 10
    environment = services["server-a"]["environment"]
    plain = {**environment, "FAIRWAY_DATABASE_URL": "postgresql://fairway@postgres/fairway"}
    assert load(plain).check() == []


def seconds(text: str) -> float:
    return float(text.removesuffix("s"))


# -- the image -------------------------------------------------------------------------------------


def test_the_image_is_built_of_what_is_there_and_runs_as_nobody_special() -> None:
    text = (DEPLOY / "Containerfile").read_text()
    lines = re.sub(r"\\\n", " ", text).splitlines()
    copied = [word for line in lines if line.startswith("COPY ") for word in line.split()[1:-1]]
    assert [word for word in copied if not (ROOT / word).exists()] == []
    last = text.rpartition("\nFROM ")[2]
    assert re.search(r"^USER 10001:10001$", last, re.MULTILINE)
    assert re.search(r'^ENTRYPOINT \["fairway"\]$', last, re.MULTILINE), "signals reach it"
    assert {pod["securityContext"]["runAsUser"] for pod in pods().values()} == {10001}


def test_words_of_docs_are_those_of_units() -> None:
    """The units are tested apart; here only that what they start exists."""
    for path in (DEPLOY / "systemd").glob("*.service"):
        (start,) = re.findall(r"^ExecStart=\S+/fairway (.*)$", path.read_text(), re.MULTILINE)
        words = start.replace("${WORKER_APP}", "shop.jobs:app").replace("${FLEET_PART}", "1/3")
        words = re.sub(r"\$\w+_POOLS", "--pool short=2", words)
        must_parse(shlex.split(words))
