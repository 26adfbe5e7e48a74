"""What holds user code to its limits: control groups, usage, its own confinement.

Here: what this host can enforce, measuring and killing a process tree, what a runner inherits.
Not here: the limits themselves (`core/run/process_limits.py`); when to look (`runners/`).
"""
