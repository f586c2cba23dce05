-- Writes a change if the values that it was decided from are still the same. Go decides what may follow what.
-- KEYS: every key that is compared or written.
-- ARGV: how many comparisons follow, then for each: its key, a field of that hash or "", and the expected value ("" for
--   none); then the commands, each as how many words it has and those words. HDELALONE drops a field of a hash that has
--   no other one.
-- Returns the reply of the last command, 0 if that is no number; -n if the nth value is another one.
local at, last = 2, 0
for n = 1, tonumber(ARGV[1]) do
  local key, field, was = unpack(ARGV, at, at + 2)
  local is
  if field == '' then
    is = redis.call('GET', key)
  else
    is = redis.call('HGET', key, field)
  end
  if (is or '') ~= was then
    return -n
  end
  at = at + 3
end
while at <= #ARGV do
  local words = tonumber(ARGV[at])
  if ARGV[at + 1] ~= 'HDELALONE' then
    last = redis.call(unpack(ARGV, at + 1, at + words))
  elseif redis.call('HLEN', ARGV[at + 2]) == 1 then
    redis.call('HDEL', ARGV[at + 2], ARGV[at + 3])
  end
  at = at + words + 1
end
return type(last) == 'number' and last or 0
