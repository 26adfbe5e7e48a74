-- serves servers from 0047 on
-- A region that becomes the directory passes over 100 000 numbers of tenants, beyond all that it knows of: so many may the lost
-- directory have given unheard. In one step, and as the owner of the sequence, for to set it is the owner's right. It never goes
-- back: two at once go one after the other, and who takes a number meanwhile takes one of the 100 000. Answers the last of them;
-- NULL, and nothing is passed over, where there are no regions.
CREATE FUNCTION fairway_pass_over_tenants() RETURNS bigint LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC -- read when it is made: whoever calls it does not choose which tables it means
    SELECT FROM region_state FOR UPDATE;
    SELECT setval('tenants_id_seq', greatest((SELECT last_value FROM tenants_id_seq), (SELECT max(id) FROM tenants)) + 100000) FROM region_state;
END;
-- Servers are granted it as they are tables (row_security.py), tenants are not.
REVOKE ALL ON FUNCTION fairway_pass_over_tenants() FROM PUBLIC;
