-- Reads lines of a caller's conversations, the newest first.
-- KEYS: the lines by when they were said, the lines by id.
-- ARGV: the id after which the page begins or "", when that was said, how many to read.
-- Returns the lines.
local ids
local after, at, count = ARGV[1], ARGV[2], tonumber(ARGV[3])
if after == '' then
  ids = redis.call('ZREVRANGE', KEYS[1], 0, count - 1)
else
  local rank = redis.call('ZREVRANK', KEYS[1], after)
  if rank then
    ids = redis.call('ZREVRANGE', KEYS[1], rank + 1, rank + count)
  else
    ids = redis.call('ZREVRANGEBYSCORE', KEYS[1], '(' .. at, '-inf', 'LIMIT', 0, count)
  end
end
if #ids == 0 then
  return {}
end
return redis.call('HMGET', KEYS[2], unpack(ids))
