-- name: move_events_on
-- Positions that were given after the backup are not given again: who follows the log would take
-- new events for ones that it has had.
UPDATE event_heads SET last = last + :gap::bigint

-- name: move_terms_on
-- Owners that came after the backup granted leases under terms that this database does not know. Ours are
-- beyond all of them: what workers still run of theirs is older than any grant of ours, and never the same.
UPDATE shards SET term = term + :gap::bigint

-- name: move_alarms_on
-- Numbers of messages follow from those of alarms: receivers drop a number that they have had.
SELECT setval(alarms.ids, nextval(alarms.ids) + :gap::bigint)
FROM (SELECT pg_get_serial_sequence('alarm_history', 'id')::regclass AS ids) AS alarms

-- name: hush_webhooks
-- A copy must not call receivers of the original.
UPDATE webhooks SET enabled = false

-- name: pause_schedules
-- What is due happens in the original.
UPDATE schedules SET paused = true

-- name: untie_storage
-- The next server ties this database to the object storage that it is given.
UPDATE cluster SET storage_marker = NULL
