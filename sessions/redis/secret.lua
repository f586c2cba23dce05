-- Keeps a client secret, unless its principal has too many.
-- KEYS: the principal's secrets by when they end, the secret by its text's sum.
-- ARGV: the sum, the secret, when it ends, now, both in Unix milliseconds, how many a principal may have.
-- Returns 1 if it is kept.
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[4])
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[5]) then
  return 0
end
redis.call('SET', KEYS[2], ARGV[2], 'PXAT', ARGV[3])
redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])
if redis.call('PTTL', KEYS[1]) < redis.call('PTTL', KEYS[2]) then
  redis.call('PEXPIREAT', KEYS[1], ARGV[3])
end
return 1
