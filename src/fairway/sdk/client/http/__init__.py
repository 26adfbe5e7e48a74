"""How the SDK speaks HTTP: addresses, connections, replies, event streams.

What is asked, and what an answer means for a job, is not known here.
"""
