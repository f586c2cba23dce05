-- tests is how the last tests of the work ended: passed, failed, or '' for none and for older work.
ALTER TABLE entries ADD COLUMN tests TEXT NOT NULL DEFAULT '';
