-- API keys. The secret itself is never stored, only its SHA-256.
-- Times everywhere in this database are microseconds since 1970-01-01T00:00:00Z; days are YYYY-MM-DD.
CREATE TABLE keys (
    id                   TEXT    NOT NULL PRIMARY KEY,
    hash                 BLOB    NOT NULL CHECK (length(hash) = 32),
    previous_hash        BLOB    CHECK (length(previous_hash) = 32),
    previous_valid_until INTEGER,
    created_at           INTEGER NOT NULL,
    last_used_at         INTEGER,
    name                 TEXT    NOT NULL,
    scopes               TEXT    NOT NULL CHECK (json_valid(scopes)),
    enabled              INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    expires_at           INTEGER,
    requests_per_minute  INTEGER,
    tokens_per_day       INTEGER,
    models               TEXT    CHECK (json_valid(models)),
    tools                TEXT    CHECK (json_valid(tools)),
    mode_ceiling         TEXT    NOT NULL,
    on_disconnect        TEXT    NOT NULL,
    metadata             TEXT    NOT NULL CHECK (json_valid(metadata)),
    CHECK ((previous_hash IS NULL) = (previous_valid_until IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX keys_by_creation ON keys (created_at, id);
