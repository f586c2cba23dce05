-- Takes the start gate of a thread unless another holder has it, as Go's ledger.Gate does.
-- KEYS: the gate: its holder or "", a space, and the turn that began last or "".
-- ARGV: the new holder, for how many milliseconds the gate is kept.
-- Returns the holder of the gate then, and the turn that began last.
local holder, last = string.match(redis.call('GET', KEYS[1]) or ' ', '^(%S*) (.*)$')
if holder == '' or holder == ARGV[1] then
  holder = ARGV[1]
  redis.call('SET', KEYS[1], holder .. ' ' .. last, 'PX', ARGV[2])
end
return {holder, last}
