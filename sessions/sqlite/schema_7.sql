-- did is what was done in a handoff, in a form of the router.
ALTER TABLE bodies ADD COLUMN did TEXT NOT NULL DEFAULT '';
