-- The audit of every act: by which key, from where, in which request, on whose things, and what it was before.
ALTER TABLE audit
    ADD COLUMN actor_name text NOT NULL DEFAULT '',
    ADD COLUMN actor_kind text NOT NULL DEFAULT '',
    ADD COLUMN address    text NOT NULL DEFAULT '',
    ADD COLUMN request_id text NOT NULL DEFAULT '',
    ADD COLUMN tenant     int,
    ADD COLUMN before     text NOT NULL DEFAULT '{}',
    ADD COLUMN after      text NOT NULL DEFAULT '{}';
CREATE INDEX audit_of_tenant ON audit (tenant, id) WHERE tenant IS NOT NULL;

ALTER TABLE audit ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON audit USING (tenant = current_tenant());

-- Acts on many jobs are one thing: what was for dead letters alone cancels as well.
ALTER TABLE dead_letter_actions RENAME TO bulk_actions;
ALTER TABLE bulk_actions RENAME COLUMN kind TO act;
ALTER TABLE bulk_actions DROP CONSTRAINT dead_letter_actions_kind_check;
ALTER INDEX dead_letter_actions_running RENAME TO bulk_actions_running;
DO $$ DECLARE old text; BEGIN  -- newer versions of PostgreSQL name what must not be NULL, too
    FOR old IN SELECT conname FROM pg_constraint WHERE conrelid = 'bulk_actions'::regclass LOOP
        EXECUTE format('ALTER TABLE bulk_actions RENAME CONSTRAINT %I TO %I', old,
                       replace(replace(old, 'dead_letter_actions', 'bulk_actions'), '_kind_', '_act_'));
    END LOOP;
END $$;
ALTER TABLE bulk_actions
    ADD CONSTRAINT bulk_actions_act_check CHECK (act IN ('cancel', 'replay', 'discard')),
    ADD COLUMN states  smallint[],
    ADD COLUMN tag     text,
    ADD COLUMN skipped bigint NOT NULL DEFAULT 0,
    ADD COLUMN failed  bigint NOT NULL DEFAULT 0;
