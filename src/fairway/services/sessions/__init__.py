"""Workers' sessions and the leases they hold: the dispatcher's working memory.

Here: sessions, the table of them, calls held open, what a worker says in a call or a hello.
Not here: decisions about them (`dispatch/`); the conversation itself (`workers/`).
"""
