-- Reads a page of a caller's history, newest first, and drops entries that have expired.
-- KEYS: the caller's history.
-- ARGV: the prefix of an entry's key before its name, the name of the entry before the page or "", when that became
--   history, how many to read.
-- Returns 1 if there may be more, and for each entry: its name, when it became history, field, value, ...
local before, after, at, count = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local members
if after == '' then
  members = redis.call('ZREVRANGE', KEYS[1], 0, count - 1, 'WITHSCORES')
else
  local rank = redis.call('ZREVRANK', KEYS[1], after)
  if rank then
    members = redis.call('ZREVRANGE', KEYS[1], rank + 1, rank + count, 'WITHSCORES')
  else
    members = redis.call('ZREVRANGEBYSCORE', KEYS[1], '(' .. at, '-inf', 'WITHSCORES', 'LIMIT', 0, count)
  end
end
local all = {}
for i = 1, #members, 2 do
  local flat = redis.pcall('HGETALL', before .. members[i])
  if flat.err then
    flat = {}
  elseif #flat == 0 then
    redis.call('ZREM', KEYS[1], members[i])
  end
  all[#all + 1] = {members[i], members[i + 1], flat}
end
return {#members == 2 * count and 1 or 0, all}
