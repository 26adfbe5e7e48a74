"""A tenant's endpoints: jobs, uploads, dead letters, restraints, schedules.

Here: submit, list, look, wait, cancel, and how a job looks to its tenant.
Not here: workers' calls (`workers/`); operators' (`operators/`).
"""
