-- An action that the store refuses to carry out ends as failed, with its reason; it does not stand in
-- the way of the others.
ALTER TABLE dead_letter_actions
    DROP CONSTRAINT dead_letter_actions_state_check,
    ADD CONSTRAINT dead_letter_actions_state_check
        CHECK (state IN ('running', 'done', 'aborted', 'failed')),
    ADD COLUMN error text;                                -- why it failed
