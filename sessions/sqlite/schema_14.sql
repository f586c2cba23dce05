-- Programs that people let act for them. next is the hash of the credential for the next tokens; ends is in Unix
-- nanoseconds.
CREATE TABLE apps (
  id TEXT PRIMARY KEY, principal TEXT NOT NULL, next BLOB NOT NULL, ends INTEGER NOT NULL, body BLOB NOT NULL
) STRICT;
CREATE INDEX apps_principal ON apps (principal);
