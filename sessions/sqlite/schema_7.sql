-- What was done of a handoff, as the router wrote it down for itself.
ALTER TABLE bodies ADD COLUMN did TEXT NOT NULL DEFAULT '';
