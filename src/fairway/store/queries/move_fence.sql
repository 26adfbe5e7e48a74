-- name: hold_process
-- Until the connection ends: whose it is.
SELECT pg_advisory_lock_shared(:lock_class::int, :process::int)

-- name: moves_asked
-- In a statement of its own, after the lock: a move that is not counted here finds the lock.
SELECT moves FROM cluster

-- name: end_connections_of_others
SELECT count(*) FILTER (WHERE pg_terminate_backend(others.pid))::int AS ended
FROM (SELECT DISTINCT locks.pid FROM pg_locks AS locks
      WHERE locks.locktype = 'advisory' AND locks.classid = :lock_class::int::oid AND locks.objsubid = 2
        AND locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND locks.objid::bigint <> ALL(:known::bigint[])) AS others
