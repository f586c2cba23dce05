-- Frees the start gate of a thread unless another holder has it, as Go's ledger.Gate does.
-- KEYS: the gate, as in gate_take.lua.
-- ARGV: the holder, the turn that began or "", for how many milliseconds the gate is kept.
local holder, last = string.match(redis.call('GET', KEYS[1]) or ' ', '^(%S*) (.*)$')
if holder == '' or holder == ARGV[1] then
  if ARGV[2] ~= '' then
    last = ARGV[2]
  end
  redis.call('SET', KEYS[1], ' ' .. last, 'PX', ARGV[3])
end
