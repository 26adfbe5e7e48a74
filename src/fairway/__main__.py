"""`python -m fairway`, and the `fairway` command."""

from __future__ import annotations

import signal


def run() -> None:
    """Ctrl-C before the commands are loaded ends the program, without the stack of an import."""
    answer = signal.getsignal(signal.SIGINT)
    if answer is signal.default_int_handler:  # who started us may want it to be ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from fairway.cli.main import main

    signal.signal(signal.SIGINT, answer)
    main()


if __name__ == "__main__":
    run()
