-- name: list_prices
SELECT pool, valid_from, base_fee_micros, slot_second_micros FROM prices ORDER BY pool, valid_from LIMIT :limit

-- name: add_price
-- One that is to come: what was charged is never changed, nor is a price that was announced.
INSERT INTO prices (pool, valid_from, base_fee_micros, slot_second_micros)
SELECT :pool::text, :valid_from::timestamptz, :base_fee_micros::bigint, :slot_second_micros::bigint
WHERE :valid_from::timestamptz > now()
ON CONFLICT DO NOTHING
RETURNING pool

-- name: drop_price
-- One that has not begun: nothing was charged by it.
DELETE FROM prices WHERE pool = :pool AND valid_from = :valid_from AND valid_from > now()
RETURNING pool, valid_from, base_fee_micros, slot_second_micros

-- name: next_hour
-- The beginning of the next one by the clock that decides.
SELECT date_trunc('hour', now(), 'UTC') + interval '1 hour' AS moment
