-- Tells a Redis that lost it, or is as it was a while ago, who has a home.
-- KEYS: the home. ARGV: who has it, in which epoch. Returns 1 if it did not know.
if tonumber(string.match(redis.call('GET', KEYS[1]) or '0', '^%d+')) >= tonumber(ARGV[2]) then
  return 0
end
redis.call('SET', KEYS[1], ARGV[2] .. ' ' .. ARGV[1])
return 1
