-- giver is the key of the grant that gave the work.
ALTER TABLE entries ADD COLUMN giver TEXT NOT NULL DEFAULT '';
-- login is the hash of the login that made a secret or a code, and with which it ends.
ALTER TABLE secrets ADD COLUMN login BLOB;
ALTER TABLE codes ADD COLUMN login BLOB;
