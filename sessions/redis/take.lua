-- Takes a caller's home unless another living instance has it.
-- KEYS: the home. ARGV: the instance, an instance that is known to be dead or "".
-- Returns who has the home then, and in which epoch. A newer epoch is always greater, also in a Redis that came back
-- empty or in an older state.
local epoch, id = string.match(redis.call('GET', KEYS[1]) or '0 ', '^(%d+) (.*)$')
if id ~= '' and id ~= ARGV[1] and id ~= ARGV[2] then
  return {id, tonumber(epoch)}
end
local now = redis.call('TIME')
epoch = math.max(tonumber(epoch) + 1, tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000))
redis.call('SET', KEYS[1], string.format('%d ', epoch) .. ARGV[1])
return {ARGV[1], epoch}
