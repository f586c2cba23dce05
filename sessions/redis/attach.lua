-- Stores which instance is in a call of the voice model's server, unless another living instance is in it.
-- KEYS: the call. ARGV: the instance, an instance that is known to be dead or "", for how many milliseconds.
-- Returns the instance that is in the call then.
local there = redis.call('GET', KEYS[1])
if there and there ~= ARGV[1] and there ~= ARGV[2] then
  return there
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
return ARGV[1]
