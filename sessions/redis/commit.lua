-- Writes a batch of a caller, if their state is still the one that it was decided from.
-- KEYS: the caller's documents by name, with the version of the state; the caller's history, sorted by when each
-- handoff became that. The other keys of the caller are in the same slot.
-- ARGV: the version that was read, the new one, for how many milliseconds the documents are kept or 0, the prefixes of
-- the keys of past handoffs and of texts, the handoff of the texts, "1" if it must not be in the past, "1" to drop its
-- past and texts first, for how many milliseconds the past is kept, and the past without words;
-- then four lists, each after its length: name and body of documents; names of documents to drop; part and text, "" to
-- drop the part; key, time, "1" for no words, and row of past handoffs.
-- Returns 0 if it was written, 1 if the version differs, 2 if the handoff is in the past.
local docs, history = KEYS[1], KEYS[2]
local was, now, keep, pasts, texts, key, free, clear, kept_for, unkept_for = unpack(ARGV, 1, 10)
if (redis.call('HGET', docs, 'version') or '') ~= was then
  return 1
end
if free == '1' and redis.call('EXISTS', pasts .. key) == 1 then
  return 2
end
if clear == '1' then
  redis.call('DEL', pasts .. key, texts .. key)
  redis.call('ZREM', history, key)
end
local at = 10
local function list(width, each)
  at = at + 1
  for _ = 1, tonumber(ARGV[at]) do
    each(unpack(ARGV, at + 1, at + width))
    at = at + width
  end
end
list(2, function(name, body)
  redis.call('HSET', docs, name, body)
end)
list(1, function(name)
  redis.call('HDEL', docs, name)
end)
list(2, function(part, text)
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
  if unkept ~= '1' then
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
