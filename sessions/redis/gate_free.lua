-- Frees the start gate of a thread, unless somebody else has it; Go's ledger.Gate says the same.
-- KEYS: the gate, as in gate_take.lua.
-- ARGV: who had it, the turn that began or "", for how many milliseconds that is known.
local holder, last = string.match(redis.call('GET', KEYS[1]) or ' ', '^(%S*) (.*)$')
if holder == '' or holder == ARGV[1] then
  if ARGV[2] ~= '' then
    last = ARGV[2]
  end
  redis.call('SET', KEYS[1], ' ' .. last, 'PX', ARGV[3])
end
