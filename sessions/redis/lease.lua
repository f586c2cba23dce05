-- Takes or renews the lease KEYS[1] with the value ARGV[1] for ARGV[2] milliseconds, in the epoch ARGV[3], 0 to
-- begin one, or to find that of a lease with this value. The newest epoch is KEYS[2]: it outlives the lease, and a newer
-- one is always greater, also in a Redis that came back empty.
-- Returns {"", 0, epoch} when the lease is ours; when a newer epoch has begun, which may have ended, {"", -1,
-- that one}; else the value of the lease's holder and when it expires, in Unix milliseconds of this Redis; -1
-- never. Safe to repeat.
local held = redis.call('GET', KEYS[1])
local now = redis.call('TIME')
local ms = tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000)
if held and held ~= ARGV[1] then
  local left = redis.call('PTTL', KEYS[1])
  return {held, left < 0 and -1 or ms + left, 0}
end
local newest, epoch = tonumber(redis.call('GET', KEYS[2]) or 0), tonumber(ARGV[3])
if epoch == 0 and held and newest > 0 then
  epoch = newest
elseif epoch == 0 then
  epoch = math.max(newest + 1, ms)
elseif newest > epoch then
  return {'', -1, newest}
end
redis.call('SET', KEYS[2], string.format('%d', epoch))
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {'', 0, epoch}
