-- The hottest statements write their events themselves.

-- A mark that a statement writes as false (a new job), or turns over (a change), says that this statement has written the
-- event, in one go for all its rows. Whatever leaves the mark as it is, be it of the version before, has it written here.
DROP TRIGGER note_changed ON jobs;
CREATE TRIGGER note_changed AFTER UPDATE OF state ON jobs
    FOR EACH ROW WHEN (NEW.events IS NOT NULL AND NEW.events = OLD.events) EXECUTE FUNCTION note_job_event();
