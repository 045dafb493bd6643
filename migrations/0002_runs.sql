-- The journal of runs. Each table that can hold what people wrote carries key_id and user_id, so that one
-- person's data can be found and erased.
CREATE TABLE runs (
    id               TEXT    NOT NULL PRIMARY KEY,
    request_id       TEXT    NOT NULL,
    key_id           TEXT    NOT NULL,
    user_id          TEXT    NOT NULL,
    origin           TEXT    NOT NULL,
    model            TEXT    NOT NULL,
    state            TEXT    NOT NULL DEFAULT 'running',
    outcome          TEXT,
    created_at       INTEGER NOT NULL,
    ended_at         INTEGER,
    input_tokens     INTEGER NOT NULL DEFAULT 0,
    output_tokens    INTEGER NOT NULL DEFAULT 0,
    cached_tokens    INTEGER NOT NULL DEFAULT 0,
    reasoning_tokens INTEGER NOT NULL DEFAULT 0,
    estimated        INTEGER NOT NULL DEFAULT 0,
    CHECK ((state = 'running') = (ended_at IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX runs_by_user ON runs (key_id, user_id);
CREATE INDEX runs_by_end ON runs (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX runs_open ON runs (id) WHERE state = 'running';

-- One line of a run's journal. state holds messages, as JSON, and is cleared when the run closes.
CREATE TABLE run_checkpoints (
    run_id  TEXT    NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    line    INTEGER NOT NULL,
    key_id  TEXT    NOT NULL,
    user_id TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    stage   TEXT    NOT NULL CHECK (json_valid(stage)),
    state   TEXT,
    PRIMARY KEY (run_id, line)
) STRICT, WITHOUT ROWID;
