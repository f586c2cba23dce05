-- Takes the start gate of a thread, unless somebody else has it; Go's ledger.Gate says the same.
-- KEYS: the gate, as its holder or "", a space, and the turn that began last or "".
-- ARGV: who takes it, for how many milliseconds.
-- Returns who has it then, and that turn.
local holder, last = string.match(redis.call('GET', KEYS[1]) or ' ', '^(%S*) (.*)$')
if holder == '' or holder == ARGV[1] then
  holder = ARGV[1]
  redis.call('SET', KEYS[1], holder .. ' ' .. last, 'PX', ARGV[2])
end
return {holder, last}
