"""`python -m examples.scoring`: the service, until it is told to stop."""

from __future__ import annotations

import uvicorn
from examples.scoring.service import Service
from examples.scoring.settings import load


def main() -> None:
    settings = load()
    app = Service(settings).build()
    print(f"scoring: http://127.0.0.1:{settings.port} ({settings.mode})", flush=True)
    uvicorn.run(
        app, host="127.0.0.1", port=settings.port, log_level="warning", access_log=False,
        timeout_graceful_shutdown=2,
    )  # fmt: skip


if __name__ == "__main__":
    main()
