-- Keeps a code, and forgets those that have ended and one too many of whoever made it.
-- KEYS: the codes by their sums. A value is when it ends, how many wrong codes it has seen, who made it, the code.
-- ARGV: the sum, when it ends in Unix microseconds, who makes it, the code, how many one may have, now.
local flat, mine = redis.call('HGETALL', KEYS[1]), {}
for i = 1, #flat, 2 do
  local ends, by = string.match(flat[i + 1], '^(%d+) %d+ (%x+) ')
  if not ends or tonumber(ends) <= tonumber(ARGV[6]) then
    redis.call('HDEL', KEYS[1], flat[i])
  elseif by == ARGV[3] then
    mine[#mine + 1] = {tonumber(ends), flat[i]}
  end
end
table.sort(mine, function(a, b) return a[1] < b[1] end)
for i = 1, #mine + 1 - tonumber(ARGV[5]) do
  redis.call('HDEL', KEYS[1], mine[i][2])
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. ' 0 ' .. ARGV[3] .. ' ' .. ARGV[4])
local life = math.ceil((tonumber(ARGV[2]) - tonumber(ARGV[6])) / 1000)
if redis.call('PTTL', KEYS[1]) < life then
  redis.call('PEXPIRE', KEYS[1], math.max(life, 1))
end
return 1
