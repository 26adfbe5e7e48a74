"""Time: recurring schedules fired, due jobs promoted, late jobs expired.

Here: schedules, the ticker, cron expressions and zones, the promoter, the expirer.
Not here: what ticks do (`core/scheduling/`); delays of retries (`core/failure/`).
"""
