-- Stores a code, and drops codes that have ended and those of the same maker that are too many.
-- KEYS: a hash from the hash of each code to when it ends, 0, its maker, the code.
-- ARGV: the code's hash, when it ends in Unix microseconds, its maker, the code, how many codes a maker may have, now.
local flat, mine = redis.call('HGETALL', KEYS[1]), {}
for i = 1, #flat, 2 do
  local ends, maker = string.match(flat[i + 1], '^(%d+) %d+ (%x+) ')
  if not ends or tonumber(ends) <= tonumber(ARGV[6]) then
    redis.call('HDEL', KEYS[1], flat[i])
  elseif maker == ARGV[3] then
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
