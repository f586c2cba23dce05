-- Keeps lines of a caller's conversations, each once, and forgets the oldest.
-- KEYS: the lines by when they were said, the lines by id.
-- ARGV: how many are kept, since when in Unix milliseconds, for how long, and of each line: its id, when, itself.
for i = 4, #ARGV, 3 do
  if redis.call('HSETNX', KEYS[2], ARGV[i], ARGV[i + 2]) == 1 then
    redis.call('ZADD', KEYS[1], ARGV[i + 1], ARGV[i])
  end
end
local function forget(ids)
  for _, id in ipairs(ids) do
    redis.call('ZREM', KEYS[1], id)
    redis.call('HDEL', KEYS[2], id)
  end
end
forget(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '(' .. ARGV[2]))
local over = redis.call('ZCARD', KEYS[1]) - tonumber(ARGV[1])
if over > 0 then
  forget(redis.call('ZRANGE', KEYS[1], 0, over - 1))
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return 1
