-- Frees a home. A home that is not stored needs no freeing.
-- KEYS: the home, the caller's documents, the caller's calls that another instance is to join.
-- ARGV: who has the home, in which epoch, for how many milliseconds the epoch is kept.
-- Returns 1 unless a handoff is open, such a call goes on, or another instance has the home.
local home = redis.call('GET', KEYS[1])
if home and home ~= ARGV[2] .. ' ' .. ARGV[1] then
  return 0
end
if home then
  redis.call('SET', KEYS[1], ARGV[2] .. ' ', 'PX', ARGV[3])
end
for _, name in ipairs(redis.call('HKEYS', KEYS[2])) do
  if string.sub(name, 1, 8) == 'handoff:' then
    return 0
  end
end
return redis.call('EXISTS', KEYS[3]) == 0 and 1 or 0
