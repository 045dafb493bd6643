-- Turns that ended with calls for the client: the server's half, kept until the client's half arrives.
CREATE TABLE held_turns (
    seq             INTEGER PRIMARY KEY,
    key_id          TEXT    NOT NULL,
    user_id         TEXT    NOT NULL,
    client_call_ids TEXT    NOT NULL CHECK (json_valid(client_call_ids)),
    messages        TEXT    NOT NULL CHECK (json_valid(messages)),
    expires_at      INTEGER NOT NULL
) STRICT;

CREATE INDEX held_turns_by_user ON held_turns (key_id, user_id, seq);
CREATE INDEX held_turns_by_expiry ON held_turns (expires_at);
