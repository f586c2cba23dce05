-- asker is the program that asked for the work, parent the work whose agent asked for it.
ALTER TABLE entries ADD COLUMN asker TEXT NOT NULL DEFAULT '';
ALTER TABLE entries ADD COLUMN parent TEXT NOT NULL DEFAULT '';
