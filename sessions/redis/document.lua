-- Keeps a document; of an owner's too many the one that ends first goes.
-- KEYS: the owner's documents by when they end, the document.
-- ARGV: its id, its body, when it ends, now, both in Unix milliseconds, how many an owner may have, how the keys of
-- documents begin.
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[4])
redis.call('SET', KEYS[2], ARGV[2], 'PXAT', ARGV[3])
redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])
while redis.call('ZCARD', KEYS[1]) > tonumber(ARGV[5]) do
  local gone = redis.call('ZPOPMIN', KEYS[1])
  redis.call('DEL', ARGV[6] .. gone[1])
end
local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')
if last[2] then
  redis.call('PEXPIREAT', KEYS[1], last[2])
end
return 1
