-- giver is the key of the grant that gave the work.
ALTER TABLE entries ADD COLUMN giver TEXT NOT NULL DEFAULT '';
