"""Jobs under test: modes without a network, assertions, single runs, a clock to turn by hand.

Here: what `fairway.testing` exports, and what the pytest plugin is made of.
Not here: tests of Fairway itself (`tests/`).
"""
