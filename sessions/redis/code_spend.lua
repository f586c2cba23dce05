-- Removes a code that is used. A hash that no code has counts as a wrong guess at every waiting code.
-- KEYS: the codes, as in code.lua.
-- ARGV: the code's hash, now in Unix microseconds, how many wrong guesses void a code.
-- Returns the code, or false.
local flat, found = redis.call('HGETALL', KEYS[1]), false
local waiting = {}
for i = 1, #flat, 2 do
  local ends, guesses, maker, code = string.match(flat[i + 1], '^(%d+) (%d+) (%x+) (.*)$')
  if not ends or tonumber(ends) <= tonumber(ARGV[2]) then
    redis.call('HDEL', KEYS[1], flat[i])
  elseif flat[i] == ARGV[1] then
    redis.call('HDEL', KEYS[1], flat[i])
    found = code
  else
    waiting[#waiting + 1] = {flat[i], ends, tonumber(guesses) + 1, maker, code}
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
