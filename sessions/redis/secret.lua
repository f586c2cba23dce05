-- Stores a client secret unless its principal has too many.
-- KEYS: the hashes of the principal's secrets sorted by when they end, the secret.
-- ARGV: its hash, the secret, when it ends and now, both in Unix milliseconds, how many a principal may have.
-- Returns 1 if it was stored.
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
