-- Stores lines of a caller's conversations, each once, and drops the oldest.
-- KEYS: the ids of the lines sorted by when they were said, a hash from the ids to the lines.
-- ARGV: how many lines are kept, the oldest time in Unix milliseconds that is kept, for how many milliseconds lines are
-- kept, and for each line: its id, when it was said, the line.
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
