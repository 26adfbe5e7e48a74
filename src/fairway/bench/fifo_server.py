"""`python -m fairway.bench.fifo_server`: `fairway server`, but first come is first served."""

from __future__ import annotations

from fairway.bench.first_come import FirstCome
from fairway.cli.processes import serve

if __name__ == "__main__":
    serve.run(FirstCome)
