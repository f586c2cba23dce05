-- What is remembered of callers. A caller is a sessions.CallerName; ends is in Unix milliseconds; that of a state that
-- never ends is the greatest number.
CREATE TABLE callers (name TEXT PRIMARY KEY, version TEXT NOT NULL, ends INTEGER NOT NULL) STRICT;
CREATE INDEX callers_by_end ON callers (ends);
CREATE TABLE docs (
  caller TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (caller, name)
) STRICT, WITHOUT ROWID;

-- Parts of the texts of handoffs.
CREATE TABLE texts (
  caller TEXT NOT NULL, key TEXT NOT NULL, part TEXT NOT NULL, text TEXT NOT NULL, UNIQUE (caller, key, part)
) STRICT;

-- Handoffs that are over. at is when they became history, in Unix milliseconds. Their words are in history_words.
CREATE TABLE past (
  id INTEGER PRIMARY KEY, caller TEXT NOT NULL, key TEXT NOT NULL, at INTEGER NOT NULL, unkept INTEGER NOT NULL,
  row TEXT NOT NULL, UNIQUE (caller, key)
) STRICT;
CREATE INDEX past_pages ON past (caller, at, key) WHERE unkept = 0;
CREATE INDEX past_by_age ON past (at);
CREATE INDEX past_unkept ON past (at) WHERE unkept = 1;

-- The entries, stickies and texts of versions before.
CREATE TEMP TABLE was AS SELECT id, caller, key, past, unkept, json_object(
  'Key', key, 'Caller', json_object('Principal', principal, 'User', user), 'Owner', owner, 'Args', args, 'Status', status,
  'Inherited', json(iif(inherited, 'true', 'false')), 'Attempt', attempt, 'Print', call, 'ClientID', client,
  'Target', json_object('Server', server, 'Project', project, 'Thread', thread), 'Watermark', watermark, 'Turn', turn,
  'Prompt', prompt, 'Title', title, 'Why', why, 'Outcome', outcome, 'Tests', tests, 'Code', code, 'Spoken', spoken,
  'Asker', asker, 'Giver', giver, 'Parent', parent, 'Unkept', json(iif(unkept, 'true', 'false')),
  'Accepted', strftime('%Y-%m-%dT%H:%M:%fZ', accepted / 1000.0, 'unixepoch'),
  'Ended', iif(ended = 0, '0001-01-01T00:00:00Z', strftime('%Y-%m-%dT%H:%M:%fZ', ended / 1000.0, 'unixepoch'))
) AS row FROM entries;
INSERT INTO docs (caller, name, body) SELECT caller, 'handoff:' || key, row FROM was WHERE past = 0;
INSERT INTO past (id, caller, key, at, unkept, row) SELECT id, caller, key, past, unkept, row FROM was WHERE past > 0;
INSERT INTO texts (caller, key, part, text) SELECT caller, key, 'prompt', prompt FROM was JOIN bodies USING (id)
WHERE prompt <> '';
INSERT INTO texts (caller, key, part, text) SELECT caller, key, 'text', text FROM was JOIN bodies USING (id)
WHERE text <> '';
INSERT INTO texts (caller, key, part, text) SELECT caller, key, 'did', did FROM was JOIN bodies USING (id)
WHERE did <> '';
INSERT INTO texts (caller, key, part, text) SELECT caller, key, 'request', request FROM was JOIN requests USING (id)
WHERE request <> '';
INSERT INTO docs (caller, name, body) SELECT caller, 'sticky:' || field, json_set(value, '$.set',
  strftime('%Y-%m-%dT%H:%M:%fZ', changed / 1000.0, 'unixepoch')) FROM stickies WHERE json_valid(value);
INSERT INTO callers (name, version, ends) SELECT caller, hex(randomblob(16)), 9223372036854775807
FROM (SELECT DISTINCT caller FROM docs);
DROP TABLE was;
DROP TABLE entries;
DROP TABLE bodies;
DROP TABLE requests;
DROP TABLE stickies;
