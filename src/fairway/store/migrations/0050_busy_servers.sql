-- serves servers from 0047 on
-- Processes behind one address share one server's part of the shards, and as few of them as the work needs own some
-- (decision 0090). Servers of the build before say nothing of this: they have their even part, as ever.
ALTER TABLE servers ADD COLUMN process_group  text    NOT NULL DEFAULT '';
ALTER TABLE servers ADD COLUMN busy_per_mille integer NOT NULL DEFAULT 0;
