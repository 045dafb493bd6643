-- What each model call cost. No message text.
CREATE TABLE usage (
    seq              INTEGER PRIMARY KEY,
    at               INTEGER NOT NULL,
    day              TEXT    NOT NULL,
    key_id           TEXT    NOT NULL,
    user_id          TEXT    NOT NULL,
    run_id           TEXT    NOT NULL,
    provider         TEXT    NOT NULL,
    model            TEXT    NOT NULL,
    role             TEXT    NOT NULL,
    input_tokens     INTEGER NOT NULL,
    output_tokens    INTEGER NOT NULL,
    cached_tokens    INTEGER NOT NULL,
    reasoning_tokens INTEGER NOT NULL,
    estimated        INTEGER NOT NULL
) STRICT;

CREATE INDEX usage_by_day ON usage (day, key_id);

-- A key's day: what is booked (the sum of its usage rows), what a crash left unaccounted for, and how far
-- tokens are reserved. The open block is reserved - settled - estimated; whoever finds one that is not its
-- own counts it as spent.
CREATE TABLE quota_days (
    key_id           TEXT    NOT NULL,
    day              TEXT    NOT NULL,
    settled_tokens   INTEGER NOT NULL DEFAULT 0,
    estimated_tokens INTEGER NOT NULL DEFAULT 0,
    reserved_tokens  INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (key_id, day)
) STRICT, WITHOUT ROWID;

CREATE INDEX quota_days_by_day ON quota_days (day);
