-- Reads a page of a caller's conversations, newest line first.
-- KEYS: the ids of the lines sorted by when they were said, a hash from the ids to the lines.
-- ARGV: the id of the line before the page or "", when that was said, how many to read.
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
