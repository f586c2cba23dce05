-- parent and the indexes find the threads that can be deleted: those not used for long and that no copy reads.
ALTER TABLE threads ADD COLUMN parent TEXT NOT NULL DEFAULT '';
UPDATE threads SET parent = coalesce(json_extract(body, '$.Parent'), '');
CREATE INDEX threads_parent ON threads (parent) WHERE parent <> '';
CREATE INDEX threads_used ON threads (updated);
