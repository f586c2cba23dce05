-- Uses a code up. One that nobody has is a wrong guess at each that waits.
-- KEYS: the codes by their sums; see code.lua.
-- ARGV: the sum, now in Unix microseconds, how many wrong codes void one.
-- Returns the code, or nothing.
local flat, found = redis.call('HGETALL', KEYS[1]), false
local waiting = {}
for i = 1, #flat, 2 do
  local ends, guesses, by, code = string.match(flat[i + 1], '^(%d+) (%d+) (%x+) (.*)$')
  if not ends or tonumber(ends) <= tonumber(ARGV[2]) then
    redis.call('HDEL', KEYS[1], flat[i])
  elseif flat[i] == ARGV[1] then
    redis.call('HDEL', KEYS[1], flat[i])
    found = code
  else
    waiting[#waiting + 1] = {flat[i], ends, tonumber(guesses) + 1, by, code}
  end
end
if found then
  return found
end
for _, w in ipairs(waiting) do
  if w[3] >= tonumber(ARGV[3]) then
    redis.call('HDEL', KEYS[1], w[1])
  else
    redis.call('HSET', KEYS[1], w[1], w[2] .. ' ' .. w[3] .. ' ' .. w[4] .. ' ' .. w[5])
  end
end
return false
