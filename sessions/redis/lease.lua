-- Takes or renews the lease KEYS[1] with the value ARGV[1] for ARGV[2] milliseconds, in the epoch ARGV[3]; 0 begins an
-- epoch, or joins that of a lease with the same value. KEYS[2] is the newest epoch. It outlives the lease, and a newer
-- epoch is always greater, also in a Redis that came back empty.
-- Returns {"", 0, epoch} if the lease is ours; {"", -1, newest epoch} if a newer epoch has begun, even if it has ended;
-- else the value of the present lease, and when it expires in Unix milliseconds by the clock of this Redis, -1 for
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
