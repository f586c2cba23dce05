-- Reads a principal's logins, or drops one of them, and forgets those that have ended.
-- KEYS: the principal's logins by id.
-- ARGV: what comes before a sum in its key, the id to drop or "".
-- Returns the logins, or 1 if the one to drop was there.
local before, drop = ARGV[1], ARGV[2]
if drop ~= '' then
  local sum = redis.call('HGET', KEYS[1], drop)
  if not sum then
    return 0
  end
  redis.call('HDEL', KEYS[1], drop)
  return redis.call('DEL', before .. sum)
end
local flat, all = redis.call('HGETALL', KEYS[1]), {}
for i = 1, #flat, 2 do
  local login = redis.call('GET', before .. flat[i + 1])
  if login then
    all[#all + 1] = login
  else
    redis.call('HDEL', KEYS[1], flat[i])
  end
end
return all
