-- What other servers' tools were when they were accepted, and what logins at those servers have yielded: sealed, with a
-- key that lies outside of this file.
CREATE TABLE mcp_pins (
    server TEXT NOT NULL,
    tool TEXT NOT NULL,
    digest TEXT NOT NULL,
    definition TEXT NOT NULL,
    accepted_at INTEGER NOT NULL,
    PRIMARY KEY (server, tool)
) STRICT, WITHOUT ROWID;

CREATE TABLE mcp_logins (
    server TEXT NOT NULL PRIMARY KEY,
    sealed BLOB NOT NULL
) STRICT, WITHOUT ROWID;
