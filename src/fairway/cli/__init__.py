"""The commands: compose the parts into programs and start them.

Here: one file for each command or family of commands; only they print.
Not here: work (`services/`); what a command needs is asked over HTTP or composed here.
"""
