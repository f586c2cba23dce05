-- Adds pieces of work of one instance to those of all instances.
-- KEYS: the time in Unix microseconds, by the clock of the Redis, from which no piece of a name counts any more.
-- ARGV: how many pieces to add, for how many microseconds each counts.
-- Returns how many microseconds are left until that time.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local full = math.max(tonumber(redis.call('GET', KEYS[1]) or '0') or 0, now) + tonumber(ARGV[1]) * tonumber(ARGV[2])
if full > now then
  redis.call('SET', KEYS[1], string.format('%.0f', full), 'PX', math.ceil((full - now) / 1000))
end
return full - now
