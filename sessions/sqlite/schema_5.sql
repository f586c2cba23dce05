-- What was said and heard in calls, by caller. A line has an id of its own, so that it is kept once.
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

-- The words under which a line is found, by its id.
CREATE VIRTUAL TABLE said_words USING fts5 (
  words, content = '', contentless_delete = 1, detail = none,
  tokenize = "unicode61 remove_diacritics 0 categories 'L* N* M* Co'"
);
