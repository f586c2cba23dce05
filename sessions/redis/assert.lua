-- Writes who has a home into a Redis that lost that, or came back in an older state.
-- KEYS: the home. ARGV: who has it, in which epoch. Returns 1 if it was written, 0 if the Redis knew this epoch or a
-- newer one.
if tonumber(string.match(redis.call('GET', KEYS[1]) or '0', '^%d+')) >= tonumber(ARGV[2]) then
  return 0
end
redis.call('SET', KEYS[1], ARGV[2] .. ' ' .. ARGV[1])
return 1
