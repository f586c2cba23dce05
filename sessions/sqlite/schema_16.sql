-- What the installation keeps for itself, whoever its callers are.
CREATE TABLE records (kind TEXT NOT NULL, name TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (kind, name)) STRICT;
