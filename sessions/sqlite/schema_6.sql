-- What a front keeps of its callers: responses and conversations. Only the front knows what is in a body.
CREATE TABLE documents (
  owner TEXT NOT NULL,
  id    TEXT NOT NULL,
  ends  INTEGER NOT NULL, -- Unix milliseconds
  body  BLOB NOT NULL,
  UNIQUE (owner, id)
) STRICT;
CREATE INDEX documents_ends ON documents (ends);
CREATE INDEX documents_owned ON documents (owner, ends);
