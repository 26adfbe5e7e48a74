"""How long a connection may hold or wait for something, told to PostgreSQL as it begins."""

from __future__ import annotations

#: What every connection obeys: no statement or transaction may hold the horizon for long, and a
#: server that froze inside a transaction holds up those who take over for no longer than a term.
TIME_LIMITS = {
    "statement_timeout": "30s",
    "lock_timeout": "10s",
    "idle_in_transaction_session_timeout": "3s",
}

#: A lock that is not free by then is somebody's for long: the caller hears it while it still waits.
SHORT_LOCKS = {"lock_timeout": "2s"}

#: Terms are renewed behind whatever the leader's connection waits for.
LEADER_LOCKS = {"lock_timeout": "500ms"}

#: On a distributed store: a node that hangs must not use up the time of a round over all of them.
LEADER_LIMITS = {"statement_timeout": "700ms"}

#: How the server finds out that we are gone: a statement that nobody waits for any more ends, and
#: what a vanished machine held is free again. Over a Unix socket the `tcp_` ones do nothing.
GONE_CLIENTS = {
    "client_connection_check_interval": "1s",
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "10000",
}
