"""When jobs run: due times, deadlines, recurring schedules and their ticks.

Here: which ticks fire and which are made up for, and how fast due jobs are promoted.
Not here: cron expressions and time zones (`services/scheduling/cron.py`); retry delays
(`failure/`).
"""
