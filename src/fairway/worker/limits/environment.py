"""What a runner inherits of its keeper's environment: everything but what opens the platform.

Jobs of all tenants run in runners. The worker's key would let one of them open sessions and take
others' jobs; an operator's key, or the address of the database, would let it do anything. A
tenant's key that stands there under a name of its own was meant for the jobs, and stays.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairway.core.keys import ApiKey

SECRETS = frozenset(
    {
        "FAIRWAY_API_KEY",
        "FAIRWAY_WORKER_KEY",
        "FAIRWAY_OPERATOR_KEY",
        "FAIRWAY_DATABASE_URL",
        "FAIRWAY_OWNER_DATABASE_URL",
    }
)


def for_runners(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environment.items()
        if name not in SECRETS and not _is_staffs(value)
    }


def _is_staffs(value: str) -> bool:
    """Whether it is a key of a worker or an operator, whatever its name."""
    key = ApiKey.parse(value.strip())
    return key is not None and key.scope != "tenant"
