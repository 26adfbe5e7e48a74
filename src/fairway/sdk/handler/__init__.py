"""What a running handler meets: its context, checkpoints, what it can say.

Here: arguments and results, threads and alarms around a call, stacks of errors.
Not here: the run as a whole (`run.py`); the process around it (`worker/`).
"""
