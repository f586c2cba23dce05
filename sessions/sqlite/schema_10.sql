-- For work from before version 9 it is not known how its tests ended, unless the work ran no command.
UPDATE entries SET tests = 'unknown'
WHERE tests = '' AND outcome = 'result' AND id IN (SELECT id FROM bodies WHERE instr(did, '"kind":"command"') > 0);
