-- Writes a change of threads, if what it was decided on is still so.
-- What may follow what is decided by Go's package threads, which read what is compared here.
-- ARGV: how many comparisons follow, then for each: its key, a field of that hash or "",
--   and what stood there ("": nothing); then the commands, each as how many words it has and those words.
-- KEYS: every key that is compared or written.
-- Returns 1 when it is written, 0 when something has changed since.
local at = 2
for _ = 1, tonumber(ARGV[1]) do
  local key, field, was = unpack(ARGV, at, at + 2)
  local is
  if field == '' then
    is = redis.call('GET', key)
  else
    is = redis.call('HGET', key, field)
  end
  if (is or '') ~= was then
    return 0
  end
  at = at + 3
end
while at <= #ARGV do
  local words = tonumber(ARGV[at])
  redis.call(unpack(ARGV, at + 1, at + words))
  at = at + words + 1
end
return 1
