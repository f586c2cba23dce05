-- Values, which belong to no caller. ends is in Unix milliseconds; that of a value that never ends is the greatest
-- number.
CREATE TABLE vals (
  kind TEXT NOT NULL, name TEXT NOT NULL, grp TEXT NOT NULL, version TEXT NOT NULL, body BLOB NOT NULL,
  ends INTEGER NOT NULL, PRIMARY KEY (kind, name)
) STRICT;
CREATE INDEX vals_by_group ON vals (kind, grp);
CREATE INDEX vals_by_end ON vals (ends);
