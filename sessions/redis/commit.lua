-- Writes a batch of a caller, if their state is still the one that it was decided from.
-- KEYS: the caller's documents by name, with the version of the state; the caller's history, sorted by when each
-- handoff became that. The other keys of the caller are in the same slot.
-- ARGV: the version that was read, the new one, for how many milliseconds the documents are kept or 0, the prefixes of
-- the keys of past handoffs and of texts, for how many milliseconds the past is kept, and the past without words;
-- then five lists, each after its length: name and body of documents; names of documents to drop; handoffs, "1" if they
-- must not be in the past, "1" to drop their past and texts first; handoff, part and text, "" to drop the part; handoff,
-- time, "1" for no words, and row of the past.
-- Returns 0 if it was written, 1 if the version differs, 2 if the handoff is in the past.
local docs, history = KEYS[1], KEYS[2]
local was, now, keep, pasts, texts, kept_for, unkept_for = unpack(ARGV, 1, 7)
if (redis.call('HGET', docs, 'version') or '') ~= was then
  return 1
end
local at = 7
local function list(width, each)
  at = at + 1
  for _ = 1, tonumber(ARGV[at]) do
    each(unpack(ARGV, at + 1, at + width))
    at = at + width
  end
end
local put, drop, taken = {}, {}, false
list(2, function(name, body) put[#put + 1] = {name, body} end)
list(1, function(name) drop[#drop + 1] = name end)
local clear = {}
list(3, function(key, free, clears)
  taken = taken or free == '1' and redis.call('EXISTS', pasts .. key) == 1
  if clears == '1' then clear[#clear + 1] = key end
end)
if taken then
  return 2
end
for _, one in ipairs(put) do
  redis.call('HSET', docs, one[1], one[2])
end
for _, name in ipairs(drop) do
  redis.call('HDEL', docs, name)
end
for _, key in ipairs(clear) do
  redis.call('DEL', pasts .. key, texts .. key)
  redis.call('ZREM', history, key)
end
list(3, function(key, part, text)
  if text == '' then
    redis.call('HDEL', texts .. key, part)
  else
    redis.call('HSET', texts .. key, part, text)
  end
end)
list(4, function(name, time, unkept, row)
  local life = unkept == '1' and unkept_for or kept_for
  redis.call('SET', pasts .. name, time .. ' ' .. unkept .. ' ' .. row, 'PX', life)
  redis.call('PEXPIRE', texts .. name, life)
  if unkept == '1' then
    redis.call('ZREM', history, name)
  else
    redis.call('ZREMRANGEBYSCORE', history, '-inf', tonumber(time) - tonumber(kept_for))
    redis.call('ZADD', history, time, name)
    redis.call('PEXPIRE', history, kept_for)
  end
end)
redis.call('HDEL', docs, 'version')
if redis.call('EXISTS', docs) == 0 then
  return 0
end
redis.call('HSET', docs, 'version', now)
if keep == '0' then
  redis.call('PERSIST', docs)
else
  redis.call('PEXPIRE', docs, keep)
end
return 0
