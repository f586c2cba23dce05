-- Removes a code that is used.
-- KEYS: the codes, as in code.lua.
-- ARGV: the code's hash, now in Unix microseconds.
-- Returns the code, or false.
local text = redis.call('HGET', KEYS[1], ARGV[1])
local ends, code = string.match(text or '', '^(%d+) %d+ %x+ (.*)$')
redis.call('HDEL', KEYS[1], ARGV[1])
return ends and tonumber(ends) > tonumber(ARGV[2]) and code
