-- The tables of a new file, which are those that schema_2.sql and the later ones make of an older file. Times are in
-- Unix milliseconds unless stated otherwise. A caller is a sessions.CallerName. The end of what never ends is the
-- greatest number.

-- The epoch of the life of the service that has the file. Each life increments it when it opens the file, and older
-- lives can write no more steps.
CREATE TABLE life (id INTEGER PRIMARY KEY CHECK (id = 1), epoch INTEGER NOT NULL) STRICT;
INSERT INTO life (id, epoch) VALUES (1, 0);

-- What is remembered of callers.
CREATE TABLE callers (name TEXT PRIMARY KEY, version TEXT NOT NULL, ends INTEGER NOT NULL) STRICT;
CREATE INDEX callers_by_end ON callers (ends);
CREATE TABLE docs (
  caller TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (caller, name)
) STRICT, WITHOUT ROWID;

-- Parts of the texts of handoffs.
CREATE TABLE texts (
  caller TEXT NOT NULL, key TEXT NOT NULL, part TEXT NOT NULL, text TEXT NOT NULL, UNIQUE (caller, key, part)
) STRICT;

-- Handoffs that are over. at is when they became history.
CREATE TABLE past (
  id INTEGER PRIMARY KEY, caller TEXT NOT NULL, key TEXT NOT NULL, at INTEGER NOT NULL, unkept INTEGER NOT NULL,
  row TEXT NOT NULL, UNIQUE (caller, key)
) STRICT;
CREATE INDEX past_pages ON past (caller, at, key) WHERE unkept = 0;
CREATE INDEX past_by_age ON past (at);
CREATE INDEX past_unkept ON past (at) WHERE unkept = 1;

-- The search index of the handoffs that are over, by their ids. Its words are split and in lower case already.
CREATE VIRTUAL TABLE history_words USING fts5 (
  words, content = '', contentless_delete = 1, detail = none,
  tokenize = "unicode61 remove_diacritics 0 categories 'L* N* M* Co'"
);

-- What was said and heard in calls. A line has an id, so that it is stored once.
CREATE TABLE said (
  id INTEGER PRIMARY KEY, caller TEXT NOT NULL, line TEXT NOT NULL, at INTEGER NOT NULL, who TEXT NOT NULL,
  text TEXT NOT NULL, UNIQUE (caller, line)
) STRICT;
CREATE INDEX said_listed ON said (caller, at, line);
CREATE INDEX said_at ON said (at);

-- The search index of the lines, by their ids.
CREATE VIRTUAL TABLE said_words USING fts5 (
  words, content = '', contentless_delete = 1, detail = none,
  tokenize = "unicode61 remove_diacritics 0 categories 'L* N* M* Co'"
);

-- The callers for whom threads were made, the newest last.
CREATE TABLE owned (
  id INTEGER PRIMARY KEY, server TEXT NOT NULL, thread TEXT NOT NULL, principal TEXT NOT NULL, user TEXT NOT NULL,
  UNIQUE (server, thread)
) STRICT;

-- Sums by name and day, such as the time in calls in nanoseconds.
CREATE TABLE spent (
  name TEXT NOT NULL, day TEXT NOT NULL, total INTEGER NOT NULL, changed INTEGER NOT NULL, PRIMARY KEY (name, day)
) STRICT, WITHOUT ROWID;

-- Values, which belong to no caller.
CREATE TABLE vals (
  kind TEXT NOT NULL, name TEXT NOT NULL, grp TEXT NOT NULL, version TEXT NOT NULL, body BLOB NOT NULL,
  ends INTEGER NOT NULL, PRIMARY KEY (kind, name)
) STRICT;
CREATE INDEX vals_by_group ON vals (kind, grp);
CREATE INDEX vals_by_end ON vals (ends);

-- The documents that fronts keep for callers, such as responses. Only the front knows the content of a body.
CREATE TABLE documents (
  owner TEXT NOT NULL, id TEXT NOT NULL, ends INTEGER NOT NULL, body BLOB NOT NULL, UNIQUE (owner, id)
) STRICT;
CREATE INDEX documents_ends ON documents (ends);
CREATE INDEX documents_owned ON documents (owner, ends);

-- Threads of the agents that Switchboard runs itself; see package handoff/threads. The body is the whole thread or turn
-- as JSON; ran is whether a turn ever began; updated is in Unix nanoseconds. parent and the indexes find the threads
-- that can be deleted: those not used for long and that no copy reads.
CREATE TABLE threads (
  id TEXT PRIMARY KEY, owner TEXT NOT NULL, ran INTEGER NOT NULL, updated INTEGER NOT NULL, body TEXT NOT NULL,
  parent TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;
CREATE INDEX threads_listed ON threads (owner, updated DESC, id) WHERE ran;
CREATE INDEX threads_parent ON threads (parent) WHERE parent <> '';
CREATE INDEX threads_used ON threads (updated);

-- first is the place of the first item of a turn, which orders the turns of a thread; until is the place after its last.
CREATE TABLE turns (
  thread TEXT NOT NULL, id TEXT NOT NULL, first INTEGER NOT NULL, until INTEGER NOT NULL, body TEXT NOT NULL,
  PRIMARY KEY (thread, id)
) STRICT, WITHOUT ROWID;

-- The items that a thread shares with the thread that it was copied from are stored with that one only. source is the
-- upstream of a model, or ''.
CREATE TABLE items (
  thread TEXT NOT NULL, place INTEGER NOT NULL, turn TEXT NOT NULL, source TEXT NOT NULL, json TEXT NOT NULL,
  UNIQUE (thread, place)
) STRICT;
