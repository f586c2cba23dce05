-- The documents that fronts keep for callers, such as responses. Only the front knows the content of a body.
CREATE TABLE documents (
  owner TEXT NOT NULL,
  id    TEXT NOT NULL,
  ends  INTEGER NOT NULL, -- Unix milliseconds
  body  BLOB NOT NULL,
  UNIQUE (owner, id)
) STRICT;
CREATE INDEX documents_ends ON documents (ends);
CREATE INDEX documents_owned ON documents (owner, ends);
