-- Stores a new app unless its principal has too many, or replaces an app whose next credential is as expected.
-- KEYS: the principal's apps sorted by when they end, the app.
-- ARGV: the app's id, the app, when it ends and now, both in Unix milliseconds, how many apps a principal may have, the
-- hash of its next credential, the hash that is expected to be stored or "" for a new app.
-- Returns 1 if the app was stored.
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[4])
local next = redis.call('HGET', KEYS[2], 'next')
if ARGV[7] == '' then
  if next or redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[5]) then
    return 0
  end
elseif next ~= ARGV[7] then
  return 0
end
redis.call('HSET', KEYS[2], 'next', ARGV[6], 'body', ARGV[2])
redis.call('PEXPIREAT', KEYS[2], ARGV[3])
redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])
if redis.call('PTTL', KEYS[1]) < redis.call('PTTL', KEYS[2]) then
  redis.call('PEXPIREAT', KEYS[1], ARGV[3])
end
return 1
