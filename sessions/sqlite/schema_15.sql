-- The codes with which pages log in. ends is in Unix nanoseconds; guesses is how many wrong codes were tried since.
CREATE TABLE codes (
  id INTEGER PRIMARY KEY, sum BLOB NOT NULL UNIQUE, principal TEXT NOT NULL, key BLOB NOT NULL, ends INTEGER NOT NULL,
  guesses INTEGER NOT NULL DEFAULT 0
) STRICT;
