-- Reads a principal's logins and drops those that have ended, or drops one of them.
-- KEYS: a hash from the ids of the principal's logins to the hashes of their tokens.
-- ARGV: the prefix of a login's key before the hash, the id to drop or "".
-- Returns the logins, or 1 if there was the one to drop.
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
