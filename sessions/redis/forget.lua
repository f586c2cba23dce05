-- Drops a life of the service unless it has beaten since.
-- KEYS: the beats. ARGV: the life's id, the number of its last known beat. Returns 1 if it was dropped.
local beat = redis.call('HGET', KEYS[1], ARGV[1])
if not beat or string.match(beat, '"n":(%d+)') ~= ARGV[2] then
  return 0
end
return redis.call('HDEL', KEYS[1], ARGV[1])
