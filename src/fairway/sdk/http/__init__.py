"""How the SDK speaks HTTP: where servers are, connections, replies, event streams.

Here: addresses and the key, tries and pauses, a lean way for what is asked very often.
Not here: what is asked, and what an answer means for a job (`client/`).
"""
