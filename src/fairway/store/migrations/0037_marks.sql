-- Moments that people want to see beside a graph: deploys, incidents, notes.
CREATE TABLE marks (
    id       bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at       timestamptz NOT NULL DEFAULT now(),
    kind     text        NOT NULL CHECK (kind IN ('deploy', 'incident', 'note')),
    text     text        NOT NULL,
    source   text,                                        -- what was first seen then; NULL: somebody wrote it
    seen_at  timestamptz NOT NULL DEFAULT now()           -- when that was last seen
);
CREATE UNIQUE INDEX marks_source ON marks (source) WHERE source IS NOT NULL;
CREATE INDEX marks_at ON marks (at);
