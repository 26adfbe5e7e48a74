-- Alarms that were raised, and until when; told by whoever owns shard 0.
CREATE TABLE alarm_history (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text        NOT NULL,
    severity   text        NOT NULL CHECK (severity IN ('warning', 'critical')),
    subject    text        NOT NULL,                      -- whom it is about
    text       text        NOT NULL,                      -- what was seen when it was raised
    value      float8      NOT NULL,
    threshold  float8      NOT NULL,
    raised_at  timestamptz NOT NULL,                      -- since when there was trouble
    ended_at   timestamptz                                -- NULL: it is raised
);
CREATE UNIQUE INDEX alarm_history_raised ON alarm_history (name, subject) WHERE ended_at IS NULL;
CREATE INDEX alarm_history_incidents ON alarm_history (raised_at) WHERE severity = 'critical';
