-- Writes a change of threads if the values that it was decided on are still the same.
-- Go's package threads decides what may follow what.
-- ARGV: how many comparisons follow, then for each: its key, a field of that hash or "", and the expected value ("" for
--   none); then the commands, each as how many words it has and those words.
-- KEYS: every key that is compared or written.
-- Returns 1 if the change was written, 0 if a value is another one.
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
