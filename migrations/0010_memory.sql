-- What is remembered of people.
--
-- A person is a number here, and every row of theirs has it: in the column person, and in the key, whose lower 24 bits
-- count that person's rows and whose upper ones are the number. All of one person's rows lie together, in the order
-- in which they were added, and a range of keys is exactly one person's. Numbers and keys are not used twice.
-- Names are compared byte by byte.
CREATE TABLE memory_people (
    number           INTEGER PRIMARY KEY AUTOINCREMENT,
    -- NULL once the person is erased: nobody finds the rows any more, and they are removed a few at a time.
    key_id           TEXT,
    user_id          TEXT    UNIQUE,
    learning         INTEGER NOT NULL DEFAULT 1 CHECK (learning IN (0, 1)),
    recall           INTEGER NOT NULL DEFAULT 1 CHECK (recall IN (0, 1)),
    -- How often something was written.
    version          INTEGER NOT NULL DEFAULT 0,
    -- Rows that have ever been. The bound keeps one person's keys out of the next one's range.
    observations_ever INTEGER NOT NULL DEFAULT 0 CHECK (observations_ever < 16777216),
    notes_ever        INTEGER NOT NULL DEFAULT 0 CHECK (notes_ever < 16777216),
    -- Rows that there are, and the words in the notes.
    observations     INTEGER NOT NULL DEFAULT 0,
    notes            INTEGER NOT NULL DEFAULT 0,
    note_words       INTEGER NOT NULL DEFAULT 0,
    last_at          INTEGER,
    CHECK ((key_id IS NULL) = (user_id IS NULL))
) STRICT;

-- Switches of whole keys; both are on where a key has no row.
CREATE TABLE memory_keys (
    key_id   TEXT    NOT NULL PRIMARY KEY,
    learning INTEGER NOT NULL DEFAULT 1 CHECK (learning IN (0, 1)),
    recall   INTEGER NOT NULL DEFAULT 1 CHECK (recall IN (0, 1))
) STRICT, WITHOUT ROWID;

-- Evidence. Rows are added and removed, never changed.
CREATE TABLE memory_observations (
    key             INTEGER PRIMARY KEY,
    person          INTEGER NOT NULL REFERENCES memory_people (number),
    id              TEXT    NOT NULL,
    kind            TEXT    NOT NULL,
    value           TEXT    NOT NULL,
    quote           TEXT    NOT NULL,
    turn            BLOB    NOT NULL CHECK (length(turn) = 32),
    conversation    TEXT    NOT NULL,
    day             TEXT    NOT NULL,
    at              INTEGER NOT NULL,
    voice           TEXT    NOT NULL,
    stance          TEXT    NOT NULL,
    extractor       TEXT    NOT NULL,
    is_explicit     INTEGER NOT NULL CHECK (is_explicit IN (0, 1)),
    is_first_person INTEGER NOT NULL CHECK (is_first_person IN (0, 1)),
    CHECK (key >> 24 = person)
) STRICT;

-- The same thing in the same turn is one observation, however often it is found there.
CREATE UNIQUE INDEX memory_observations_once ON memory_observations (person, turn, kind, value, stance);

CREATE TRIGGER memory_observations_added AFTER INSERT ON memory_observations BEGIN
    UPDATE memory_people SET observations = observations + 1, last_at = max(coalesce(last_at, new.at), new.at)
    WHERE number = new.person;
END;
CREATE TRIGGER memory_observations_removed AFTER DELETE ON memory_observations BEGIN
    UPDATE memory_people SET observations = observations - 1 WHERE number = old.person;
END;

-- Facts in words, for recall. A note whose text changes is another row.
CREATE TABLE memory_notes (
    key     INTEGER PRIMARY KEY,
    person  INTEGER NOT NULL REFERENCES memory_people (number),
    fact    TEXT    NOT NULL,
    kind    TEXT    NOT NULL,
    value   TEXT    NOT NULL,
    text    TEXT    NOT NULL,
    -- What the full-text index was given, where it differs from text.
    words   TEXT,
    -- How many words that are.
    length  INTEGER NOT NULL,
    CHECK (key >> 24 = person)
) STRICT;

CREATE UNIQUE INDEX memory_notes_by_fact ON memory_notes (person, fact);

-- The words. Contentless: the text stands in memory_notes and nowhere else; what is deleted is handed in again.
-- A search is bounded by a range of keys, so that it reads one person's part of each word's list.
CREATE VIRTUAL TABLE memory_words USING fts5 (
    text, content = '', columnsize = 0, tokenize = 'porter unicode61 remove_diacritics 2'
);
-- Deleted words are taken out of the index at once, not when its segments are merged some day.
INSERT INTO memory_words (memory_words, rank) VALUES ('secure-delete', 1);

CREATE TRIGGER memory_notes_added AFTER INSERT ON memory_notes BEGIN
    INSERT INTO memory_words (rowid, text) VALUES (new.key, coalesce(new.words, new.text));
    UPDATE memory_people SET notes = notes + 1, note_words = note_words + new.length WHERE number = new.person;
END;
CREATE TRIGGER memory_notes_removed AFTER DELETE ON memory_notes BEGIN
    INSERT INTO memory_words (memory_words, rowid, text) VALUES ('delete', old.key, coalesce(old.words, old.text));
    UPDATE memory_people SET notes = notes - 1, note_words = note_words - old.length WHERE number = old.person;
END;

-- Embedding models by number.
CREATE TABLE memory_models (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    name      TEXT    NOT NULL UNIQUE,
    dimension INTEGER
) STRICT;

-- A note has a vector of one model. Its numbers are little-endian 32-bit floats; NULL where the text holds nothing
-- that the model knows.
CREATE TABLE memory_vectors (
    note   INTEGER PRIMARY KEY REFERENCES memory_notes (key) ON DELETE CASCADE,
    model  INTEGER NOT NULL REFERENCES memory_models (id),
    vector BLOB
) STRICT;

-- Finished turns that wait to be learned from. A row goes in the transaction that keeps what was learned.
CREATE TABLE memory_captures (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id       TEXT    NOT NULL UNIQUE,
    key_id       TEXT    NOT NULL,
    user_id      TEXT    NOT NULL,
    turn         BLOB    NOT NULL CHECK (length(turn) = 32),
    conversation TEXT    NOT NULL,
    day          TEXT    NOT NULL,
    at           INTEGER NOT NULL,
    said         TEXT    NOT NULL,
    -- Texts, as a JSON list.
    in_sight     TEXT    NOT NULL,
    -- While somebody works on it: when another one may.
    due_at       INTEGER NOT NULL,
    is_leased    INTEGER NOT NULL DEFAULT 0 CHECK (is_leased IN (0, 1)),
    leases       INTEGER NOT NULL DEFAULT 0,
    attempts     INTEGER NOT NULL DEFAULT 0,
    problem      TEXT,
    is_dead      INTEGER NOT NULL DEFAULT 0 CHECK (is_dead IN (0, 1)),
    CHECK (NOT (is_dead AND is_leased))
) STRICT;

CREATE INDEX memory_captures_by_user ON memory_captures (user_id, is_dead);
CREATE INDEX memory_captures_due ON memory_captures (due_at) WHERE is_dead = 0;
CREATE INDEX memory_captures_dead ON memory_captures (at) WHERE is_dead = 1;
