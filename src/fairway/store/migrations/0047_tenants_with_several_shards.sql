-- A very large tenant is made of parts, each a tenant with a shard of its own (decision 0082). The first of them is the tenant
-- that people know; the others are named after it, with a number, as no tenant can be that somebody adds.
-- Servers of the build before take parts for tenants: bring all of them up before such a tenant is made.
ALTER TABLE tenants ADD COLUMN part_of int;                          -- the tenant that it is a part of; NULL: a tenant of its own
ALTER TABLE tenants ADD COLUMN parts   int[] NOT NULL DEFAULT '{}';  -- of one that has several: all of them, the first first
CREATE INDEX tenants_part_of ON tenants (part_of) WHERE part_of IS NOT NULL;
ALTER TABLE tenants DROP CONSTRAINT tenants_name_check;
ALTER TABLE tenants ADD CONSTRAINT tenants_name_check CHECK (name ~ '^[a-z0-9][a-z0-9_.-]{0,62}(#[0-9]{1,2})?$');
ALTER TABLE tenants ADD CONSTRAINT parts_have_a_number CHECK ((part_of IS NOT NULL) = (name ~ '#'));
