-- A run's row holds the first line of its journal and says whether it has the last one, so that opening and
-- closing a run, which every request waits for, touch one row. run_checkpoints has the lines between, from 2 on.
ALTER TABLE runs ADD COLUMN first_at INTEGER;
ALTER TABLE runs ADD COLUMN first_stage TEXT CHECK (json_valid(first_stage));
-- Holds messages, as JSON, and is cleared like the state of any other line.
ALTER TABLE runs ADD COLUMN first_state TEXT;
ALTER TABLE runs ADD COLUMN has_end INTEGER NOT NULL DEFAULT 0 CHECK (has_end IN (0, 1));

-- Every line of every journal. Runs of earlier versions have all of theirs in run_checkpoints.
CREATE VIEW run_journal (run_id, line, at, stage, state) AS
    SELECT id, 1, first_at, first_stage, first_state FROM runs WHERE first_stage IS NOT NULL
    UNION ALL
    SELECT run_id, line, at, stage, state FROM run_checkpoints
    UNION ALL
    SELECT id, 9223372036854775807, ended_at, '{"stage":"end"}', NULL FROM runs WHERE has_end = 1;

-- Ids begin with the time now and have 30 characters, so that old runs lie together. Only ids of earlier versions
-- still need an index by their end.
DROP INDEX runs_by_end;
CREATE INDEX runs_by_end ON runs (ended_at) WHERE ended_at IS NOT NULL AND length(id) <> 30;
