-- Rows of the log that cannot be booked stand aside with the reason, and hold up no others.
ALTER TABLE usage_log ADD COLUMN refused text;

-- What a notice tells programs beside its sentence, such as an amount of money.
ALTER TABLE event_inbox ADD COLUMN facts jsonb;
