"""What a command shows and asks: tables, forms of an answer, times, questions before bulk acts.

Here: what every command shares when it speaks to a person or a pipe.
Not here: commands, and what they ask a server (`remote.py`).
"""
