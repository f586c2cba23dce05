-- What version 2 adds: which life of the service has the file. Each life counts it up when it opens the file,
-- and an older one writes no more steps.
CREATE TABLE life (id INTEGER PRIMARY KEY CHECK (id = 1), epoch INTEGER NOT NULL) STRICT;
INSERT INTO life (id, epoch) VALUES (1, 0);
