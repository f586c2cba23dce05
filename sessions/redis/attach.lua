-- Notes which instance is in a call of the voice model's server, unless another one is that is not known to be dead.
-- KEYS: the call. ARGV: who is in it, who is known to be dead or "", how long that is kept in ms.
-- Returns who is in it then.
local there = redis.call('GET', KEYS[1])
if there and there ~= ARGV[1] and there ~= ARGV[2] then
  return there
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
return ARGV[1]
