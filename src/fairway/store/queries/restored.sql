-- name: move_events_on
-- Positions that were given after the backup are not given again: who follows the log would take
-- new events for ones that it has had.
UPDATE event_heads SET last = last + :gap::bigint

-- name: hush_webhooks
-- A copy must not call receivers of the original.
UPDATE webhooks SET enabled = false

-- name: pause_schedules
-- What is due happens in the original.
UPDATE schedules SET paused = true

-- name: untie_storage
-- The next server ties this database to the object storage that it is given.
UPDATE cluster SET storage_marker = NULL
