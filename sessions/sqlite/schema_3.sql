-- Client secrets, which open calls until they end. Only the hash of their text is kept.
CREATE TABLE secrets (
  sum       BLOB PRIMARY KEY,
  principal TEXT NOT NULL,
  key       BLOB NOT NULL,
  user      TEXT NOT NULL,
  session   BLOB,
  ends      INTEGER NOT NULL -- Unix nanoseconds
) STRICT, WITHOUT ROWID;
CREATE INDEX secrets_principal ON secrets (principal, ends);
