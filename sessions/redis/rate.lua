-- Adds what one instance gave to what all gave, and tells when that will count no more, as Redis' clock has it.
-- KEYS: when all that was given by a name counts no more, in Unix microseconds.
-- ARGV: how many pieces were given, the microseconds that each takes to count no more.
-- Returns the microseconds until then.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local full = math.max(tonumber(redis.call('GET', KEYS[1]) or '0') or 0, now) + tonumber(ARGV[1]) * tonumber(ARGV[2])
if full > now then
  redis.call('SET', KEYS[1], string.format('%.0f', full), 'PX', math.ceil((full - now) / 1000))
end
return full - now
