-- The records of the installation, which belong to no caller.
CREATE TABLE records (kind TEXT NOT NULL, name TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (kind, name)) STRICT;
