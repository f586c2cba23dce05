-- Threads of the agents that Switchboard runs itself; see package handoff/threads. The body is the whole thread or turn
-- as JSON.
CREATE TABLE threads (
  id      TEXT PRIMARY KEY,
  owner   TEXT NOT NULL,
  ran     INTEGER NOT NULL, -- whether a turn ever began
  updated INTEGER NOT NULL, -- Unix nanoseconds
  body    TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX threads_listed ON threads (owner, updated DESC, id) WHERE ran;

CREATE TABLE turns (
  thread TEXT NOT NULL,
  id     TEXT NOT NULL,
  first  INTEGER NOT NULL, -- the place of its first item, which orders the turns of a thread
  until  INTEGER NOT NULL, -- the place after its last
  body   TEXT NOT NULL,
  PRIMARY KEY (thread, id)
) STRICT, WITHOUT ROWID;

-- The items that a thread shares with the thread that it was copied from are stored with that one only.
CREATE TABLE items (
  thread TEXT NOT NULL,
  place  INTEGER NOT NULL,
  turn   TEXT NOT NULL,
  source TEXT NOT NULL, -- the upstream of a model, or ''
  json   TEXT NOT NULL,
  UNIQUE (thread, place)
) STRICT;
