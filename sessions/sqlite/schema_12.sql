-- The program that asked for the work, and the work whose agent asked.
ALTER TABLE entries ADD COLUMN asker TEXT NOT NULL DEFAULT '';
ALTER TABLE entries ADD COLUMN parent TEXT NOT NULL DEFAULT '';
