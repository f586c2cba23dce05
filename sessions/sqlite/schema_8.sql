-- Which threads are read by copies of them, and which were not used for long: those can be forgotten.
ALTER TABLE threads ADD COLUMN parent TEXT NOT NULL DEFAULT '';
UPDATE threads SET parent = coalesce(json_extract(body, '$.Parent'), '');
CREATE INDEX threads_parent ON threads (parent) WHERE parent <> '';
CREATE INDEX threads_used ON threads (updated);
