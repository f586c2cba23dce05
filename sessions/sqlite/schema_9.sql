-- How the tests ended that work ran last: passed, failed, or '' for none and for work of before.
ALTER TABLE entries ADD COLUMN tests TEXT NOT NULL DEFAULT '';
