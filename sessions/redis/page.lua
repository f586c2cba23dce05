-- Reads a page of a caller's history, newest first, and drops handoffs that have expired.
-- KEYS: the caller's history.
-- ARGV: the prefix of the keys of past handoffs, the handoff before the page or "", when that became history, how many
-- to read.
-- Returns 1 if there may be more, and for each handoff its key, when it became history, and what is stored or "".
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
  local row = redis.call('GET', before .. members[i])
  if not row then
    redis.call('ZREM', KEYS[1], members[i])
  end
  all[#all + 1] = {members[i], members[i + 1], row or ''}
end
return {#members == 2 * count and 1 or 0, all}
