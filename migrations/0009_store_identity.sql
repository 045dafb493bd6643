-- Which database this is, for an index that is kept elsewhere: one that was filled from another is filled anew.
ALTER TABLE kb_state ADD COLUMN identity TEXT NOT NULL DEFAULT '';
UPDATE kb_state SET identity = lower(hex(randomblob(16)));
