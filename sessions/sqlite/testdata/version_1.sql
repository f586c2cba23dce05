-- The tables of version 1. Times are in Unix milliseconds unless stated otherwise; a caller is a
-- sessions.CallerName.

-- The ledger and the history. past is when an entry became history, 0 before.
CREATE TABLE entries (
  id INTEGER PRIMARY KEY,
  caller TEXT NOT NULL,
  past INTEGER NOT NULL,
  key TEXT NOT NULL, principal TEXT NOT NULL, user TEXT NOT NULL, owner TEXT NOT NULL, args TEXT NOT NULL,
  status TEXT NOT NULL, inherited INTEGER NOT NULL, attempt INTEGER NOT NULL,
  call TEXT NOT NULL, client TEXT NOT NULL, server TEXT NOT NULL, project TEXT NOT NULL, thread TEXT NOT NULL,
  watermark TEXT NOT NULL, turn TEXT NOT NULL, prompt TEXT NOT NULL, title TEXT NOT NULL, why TEXT NOT NULL,
  outcome TEXT NOT NULL, code TEXT NOT NULL, spoken TEXT NOT NULL,
  accepted INTEGER NOT NULL, ended INTEGER NOT NULL,
  UNIQUE (caller, key)
) STRICT;
CREATE INDEX entries_open ON entries (caller, accepted, key) WHERE past = 0;
CREATE INDEX entries_unheard ON entries (caller, ended, key) WHERE past = 0 AND status = 'completed';
CREATE INDEX entries_history ON entries (caller, past, key) WHERE past > 0;
CREATE INDEX entries_past ON entries (past) WHERE past > 0;

-- The whole texts of an entry, by its id.
CREATE TABLE bodies (id INTEGER PRIMARY KEY, prompt TEXT NOT NULL, text TEXT NOT NULL) STRICT;

-- The search index of the history, by the entry's id. Its words are split and in lower case already.
CREATE VIRTUAL TABLE history_words USING fts5 (
  words, content = '', contentless_delete = 1, detail = none,
  tokenize = "unicode61 remove_diacritics 0 categories 'L* N* M* Co'"
);

CREATE TABLE stickies (
  caller TEXT NOT NULL, field TEXT NOT NULL, value TEXT NOT NULL, changed INTEGER NOT NULL,
  PRIMARY KEY (caller, field)
) STRICT, WITHOUT ROWID;

-- Times of logins are in Unix nanoseconds.
CREATE TABLE logins (
  principal TEXT NOT NULL, id TEXT NOT NULL, sum BLOB NOT NULL UNIQUE, key BLOB NOT NULL, host TEXT NOT NULL,
  device TEXT NOT NULL, made INTEGER NOT NULL, used INTEGER NOT NULL, ends INTEGER NOT NULL,
  PRIMARY KEY (principal, id)
) STRICT;

-- Sums by name and day, such as the time in calls in nanoseconds.
CREATE TABLE spent (
  name TEXT NOT NULL, day TEXT NOT NULL, total INTEGER NOT NULL, changed INTEGER NOT NULL,
  PRIMARY KEY (name, day)
) STRICT, WITHOUT ROWID;
