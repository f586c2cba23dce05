-- Writes a change if the reads that it was decided from still have the same answers. Go decides what may follow what.
-- KEYS: every key that is read or written.
-- ARGV: how many reads follow, then each as how many words it has, those words, and the expected answer ("" for none);
--   then the commands, each as how many words it has and those words. HDELALONE drops a field of a hash that has no
--   other one.
-- Returns the reply of the last command, 0 if that is no number; -n if the nth read has another answer.
local at, last = 2, 0
for n = 1, tonumber(ARGV[1]) do
  local words = tonumber(ARGV[at])
  local is = redis.call(unpack(ARGV, at + 1, at + words))
  if tostring(is or '') ~= ARGV[at + words + 1] then
    return -n
  end
  at = at + words + 2
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
