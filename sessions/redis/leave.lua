-- Frees a home. One that nobody had in writing has nothing to free.
-- KEYS: the home, the caller's open entries, their calls that another instance is to join.
-- ARGV: who has it, in which epoch, how long the epoch is kept in ms.
-- Returns 1 unless something is open or such a call goes on, or somebody else has it.
local home = redis.call('GET', KEYS[1])
if home and home ~= ARGV[2] .. ' ' .. ARGV[1] then
  return 0
end
if home then
  redis.call('SET', KEYS[1], ARGV[2] .. ' ', 'PX', ARGV[3])
end
return redis.call('EXISTS', KEYS[2], KEYS[3]) == 0 and 1 or 0
