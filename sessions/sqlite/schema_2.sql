-- The epoch of the life of the service that has the file. Each life increments it when it opens the file, and older
-- lives can write no more steps.
CREATE TABLE life (id INTEGER PRIMARY KEY CHECK (id = 1), epoch INTEGER NOT NULL) STRICT;
INSERT INTO life (id, epoch) VALUES (1, 0);
