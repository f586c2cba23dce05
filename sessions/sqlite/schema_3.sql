-- Client secrets, which open calls for a while. Of their text there is only the sum.
CREATE TABLE secrets (
  sum       BLOB PRIMARY KEY,
  principal TEXT NOT NULL,
  key       BLOB NOT NULL,
  user      TEXT NOT NULL,
  session   BLOB,
  ends      INTEGER NOT NULL -- Unix nanoseconds
) STRICT, WITHOUT ROWID;
CREATE INDEX secrets_principal ON secrets (principal, ends);
