-- How the tests ended of work from before version 9 is not known, unless it ran no command.
UPDATE entries SET tests = 'unknown'
WHERE tests = '' AND outcome = 'result' AND id IN (SELECT id FROM bodies WHERE instr(did, '"kind":"command"') > 0);
