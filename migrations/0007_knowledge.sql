-- What is known of the files in the knowledge bank, their chunks, the words in them and their vectors.
CREATE TABLE kb_documents (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    path           TEXT    NOT NULL UNIQUE,
    bytes          INTEGER NOT NULL,
    modified_ns    INTEGER NOT NULL,
    sha256         BLOB    NOT NULL CHECK (length(sha256) = 32),
    recipe         TEXT    NOT NULL,
    title          TEXT    NOT NULL,
    format         TEXT    NOT NULL,
    -- By rank, so that "no less than" is a comparison: secondary, interpretation, primary.
    authority      INTEGER NOT NULL CHECK (authority BETWEEN 0 AND 2),
    -- How often content was put in.
    generation     INTEGER NOT NULL,
    chunks         INTEGER NOT NULL,
    indexed_at     INTEGER NOT NULL,
    failure_code   TEXT,
    failure_reason TEXT,
    failure_hint   TEXT,
    CHECK ((failure_code IS NULL) = (failure_reason IS NULL) AND (failure_code IS NULL) = (failure_hint IS NULL))
) STRICT;

CREATE INDEX kb_documents_failed ON kb_documents (failure_code) WHERE failure_code IS NOT NULL;

-- A chunk without a document is on its way in, ahead of the transaction that shows the whole document, or on its
-- way out. Nobody sees it, and after expires_at whoever finds it removes it. Keys are never used twice, so that
-- an index in memory cannot take one chunk for another.
CREATE TABLE kb_chunks (
    key        INTEGER PRIMARY KEY AUTOINCREMENT,
    document   INTEGER REFERENCES kb_documents (id),
    ordinal    INTEGER NOT NULL,
    citation   TEXT    NOT NULL,
    sha256     BLOB    NOT NULL CHECK (length(sha256) = 32),
    place      TEXT    NOT NULL CHECK (json_valid(place)),
    text       TEXT    NOT NULL,
    -- What the full-text index was given: heading always, words where it differs from text.
    heading    TEXT    NOT NULL,
    words      TEXT,
    expires_at INTEGER,
    CHECK ((document IS NULL) = (expires_at IS NOT NULL))
) STRICT;

CREATE INDEX kb_chunks_by_document ON kb_chunks (document, ordinal) WHERE document IS NOT NULL;
CREATE INDEX kb_chunks_by_citation ON kb_chunks (citation);
CREATE INDEX kb_chunks_by_hash ON kb_chunks (sha256);
CREATE INDEX kb_chunks_unseen ON kb_chunks (expires_at) WHERE document IS NULL;

-- The words. Contentless: the text stands in kb_chunks and nowhere else; what is deleted is handed in again.
CREATE VIRTUAL TABLE kb_words USING fts5 (
    heading, text, content = '', tokenize = 'porter unicode61 remove_diacritics 2'
);
-- Deleted words are taken out of the index at once, not when its segments are merged some day.
INSERT INTO kb_words (kb_words, rank) VALUES ('secure-delete', 1);

-- In how many chunks a word stands.
CREATE VIRTUAL TABLE kb_terms USING fts5vocab (kb_words, 'row');

-- Models are numbered and numbers are not used twice. One that is retired has no vectors, or soon none.
CREATE TABLE kb_models (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    name      TEXT    NOT NULL,
    dimension INTEGER,
    -- Rows in kb_vectors.
    answers   INTEGER NOT NULL DEFAULT 0,
    retired   INTEGER NOT NULL DEFAULT 0 CHECK (retired IN (0, 1))
) STRICT;

CREATE UNIQUE INDEX kb_models_by_name ON kb_models (name) WHERE retired = 0;

-- The id is the model's number times 2^40 plus the chunk's key, so that the vectors of a model lie together and in
-- the order of the keys. A vector is its numbers as little-endian 32-bit floats; NULL where the chunk holds
-- nothing that the model knows.
CREATE TABLE kb_vectors (
    id     INTEGER PRIMARY KEY,
    vector BLOB
) STRICT;

CREATE TRIGGER kb_vectors_added AFTER INSERT ON kb_vectors BEGIN
    UPDATE kb_models SET answers = answers + 1 WHERE id = new.id >> 40;
END;
CREATE TRIGGER kb_vectors_removed AFTER DELETE ON kb_vectors BEGIN
    UPDATE kb_models SET answers = answers - 1 WHERE id = old.id >> 40;
END;

-- One row. version grows with each write that changes chunks or vectors; what was known before reset_version is to
-- be read anew.
CREATE TABLE kb_state (
    id            INTEGER PRIMARY KEY CHECK (id = 1),
    version       INTEGER NOT NULL,
    reset_version INTEGER NOT NULL,
    serving       INTEGER REFERENCES kb_models (id)
) STRICT;
INSERT INTO kb_state (id, version, reset_version, serving) VALUES (1, 0, 0, NULL);

-- The chunks that the latest versions touched, for other processes that keep an index in memory.
CREATE TABLE kb_changes (
    version INTEGER NOT NULL,
    key     INTEGER NOT NULL,
    PRIMARY KEY (version, key)
) STRICT, WITHOUT ROWID;
