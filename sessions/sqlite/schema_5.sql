-- What was said and heard in calls, by caller. A line has an id, so that it is stored once.
CREATE TABLE said (
  id     INTEGER PRIMARY KEY,
  caller TEXT NOT NULL,
  line   TEXT NOT NULL,
  at     INTEGER NOT NULL, -- Unix milliseconds
  who    TEXT NOT NULL,
  text   TEXT NOT NULL,
  UNIQUE (caller, line)
) STRICT;
CREATE INDEX said_listed ON said (caller, at, line);
CREATE INDEX said_at ON said (at);

-- The search index of the lines, by their ids.
CREATE VIRTUAL TABLE said_words USING fts5 (
  words, content = '', contentless_delete = 1, detail = none,
  tokenize = "unicode61 remove_diacritics 0 categories 'L* N* M* Co'"
);
