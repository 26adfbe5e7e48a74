"""`python -m fairway.bench.fifo_server`: `fairway server`, but first come is first served."""

from __future__ import annotations

import sys

from fairway.bench.first_come import FirstCome
from fairway.cli import serve


def main() -> int:
    return serve.run(
        port=None, host=None, database_url=None, advertised_url=None, scheduler=FirstCome
    )


if __name__ == "__main__":
    sys.exit(main())
