-- Keeps a new app, unless its principal has too many, or puts it in the place of one.
-- KEYS: the principal's apps by when they end, the app.
-- ARGV: its id, the app, when it ends, now, both in Unix milliseconds, how many a principal may have, the sum of its next
-- credential, the one that stands there now or "" for a new app.
-- Returns 1 if it is kept.
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
