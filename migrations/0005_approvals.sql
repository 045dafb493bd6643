-- Questions to a person about exactly one call. What binds one is spelled out, so that a claim is one UPDATE.
-- arguments are redacted JSON text, summary is made from parsed facts; neither holds what people wrote beside
-- a call's own arguments.
CREATE TABLE approvals (
    seq          INTEGER PRIMARY KEY,
    id           TEXT    NOT NULL UNIQUE,
    run_id       TEXT    NOT NULL,
    key_id       TEXT    NOT NULL,
    user_id      TEXT    NOT NULL,
    conversation TEXT    NOT NULL,
    mode         TEXT    NOT NULL,
    tool         TEXT    NOT NULL,
    fingerprint  TEXT    NOT NULL,
    policy       TEXT    NOT NULL,
    summary      TEXT    NOT NULL,
    arguments    TEXT    NOT NULL,
    reasons      TEXT    NOT NULL CHECK (json_valid(reasons)),
    state        TEXT    NOT NULL CHECK (state IN
                     ('pending', 'approved', 'denied', 'expired', 'claimed', 'consumed', 'indeterminate')),
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    decided_by   TEXT,
    decided_at   INTEGER
) STRICT;

CREATE INDEX approvals_by_user ON approvals (key_id, user_id, seq);
CREATE INDEX approvals_open ON approvals (expires_at) WHERE state IN ('pending', 'approved', 'claimed');
CREATE UNIQUE INDEX approvals_asked ON approvals
    (fingerprint, key_id, user_id, conversation, mode, tool, policy) WHERE state = 'pending';

-- The first key made here manages everything; it may answer questions too. No other key is given that.
UPDATE keys
SET scopes = json_insert(scopes, '$[#]', 'approvals:read', '$[#]', 'approvals:decide:own', '$[#]', 'approvals:decide:any')
WHERE id = (SELECT id FROM keys ORDER BY created_at, id LIMIT 1)
  AND EXISTS (SELECT 1 FROM json_each(scopes) WHERE value = 'admin');
