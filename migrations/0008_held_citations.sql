-- The passages that a held turn's tools have shown: an answer that comes later may still name them.
ALTER TABLE held_turns ADD COLUMN citations TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(citations));
