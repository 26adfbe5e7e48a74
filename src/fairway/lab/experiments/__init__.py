"""One file for each question the lab asks.

Here: what is started, varied and measured, and the words of the result.
Not here: computing (`measure/`), drawing (`report/`).
"""
