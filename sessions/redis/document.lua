-- Stores a document. Of an owner's brief documents, and of the others, too many are dropped, the first to end first.
-- KEYS: the owner's documents sorted by when they end, the document.
-- ARGV: the document's id, its body, when it ends and now, both in Unix milliseconds, how many of either kind an owner
-- may have, the prefix of the keys of documents, the latest end of a brief document.
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[4])
redis.call('SET', KEYS[2], ARGV[2], 'PXAT', ARGV[3])
redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])
for _, ends in ipairs({{'-inf', ARGV[7]}, {'(' .. ARGV[7], '+inf'}}) do
  local over = redis.call('ZCOUNT', KEYS[1], ends[1], ends[2]) - ARGV[5]
  if over > 0 then
    for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], ends[1], ends[2], 'LIMIT', 0, over)) do
      redis.call('ZREM', KEYS[1], id)
      redis.call('DEL', ARGV[6] .. id)
    end
  end
end
local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')
if last[2] then
  redis.call('PEXPIREAT', KEYS[1], last[2])
end
return 1
