"""The platform's own scheduling code in virtual time: a fleet of an hour in minutes, and what-ifs.

Here: virtual time, workers and a store in memory around the real dispatcher, what is asked of them.
Not here: any decision (`core/`, `services/`), experiments on real processes (`lab/`).
"""
