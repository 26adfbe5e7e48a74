"""What people ask of jobs that are there: look, wait, cancel, move, explain, replay.

Here: lookups and long-polls, control, why a job waits, dead letters, flows, what runs said.
Not here: handing jobs in (`submit/`); what workers say of them (`workers/`).
"""
