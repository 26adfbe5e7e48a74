"""`python -m examples.judge`: the service, until it is told to stop."""

from __future__ import annotations

import uvicorn
from examples.judge.service import Service
from examples.judge.settings import load


def main() -> None:
    settings = load()
    print(f"judge: http://127.0.0.1:{settings.port}", flush=True)
    uvicorn.run(
        Service(settings).build(), host="127.0.0.1", port=settings.port, log_level="warning",
        access_log=False, timeout_graceful_shutdown=2,
    )  # fmt: skip


if __name__ == "__main__":
    main()
