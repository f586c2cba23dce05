-- unkept is 1 for an entry without texts: only its key, its id and its outcome are kept, for a day.
ALTER TABLE entries ADD COLUMN unkept INTEGER NOT NULL DEFAULT 0;
CREATE INDEX entries_unkept ON entries (past) WHERE unkept = 1 AND past > 0;

-- The whole requests of waiting entries, by the entry's id.
CREATE TABLE requests (id INTEGER PRIMARY KEY, request TEXT NOT NULL) STRICT;

-- The callers for whom threads were made, the newest last.
CREATE TABLE owned (
  id INTEGER PRIMARY KEY, server TEXT NOT NULL, thread TEXT NOT NULL, principal TEXT NOT NULL, user TEXT NOT NULL,
  UNIQUE (server, thread)
) STRICT;
INSERT OR IGNORE INTO owned (server, thread, principal, user)
SELECT server, thread, principal, user FROM entries
WHERE attempt > 0 AND thread NOT IN ('', 'new') AND why IN ('new', 'replaced', 'copy', 'aside') ORDER BY id;
