-- The machines that joined.
CREATE TABLE machines (
  key    BLOB NOT NULL PRIMARY KEY,
  name   TEXT NOT NULL,
  joined INTEGER NOT NULL,
  body   BLOB
) STRICT;
