-- Stores how many calls of a name are open at one instance, if those of all instances together are allowed.
-- KEYS: a hash from the id of each instance to the number of its newest count, a space, and how many calls it has.
-- ARGV: the instance, the number of this count, its calls, how many may be open at all instances (0: any number), for
-- how many milliseconds the hash is kept.
-- Returns "1" if the calls are allowed, else "0", and then the ids of the other instances in the hash.
local all = redis.call('HGETALL', KEYS[1])
local open, newest, reply = tonumber(ARGV[3]), 0, {'1'}
for i = 1, #all, 2 do
  local number, calls = string.match(all[i + 1], '^(%d+) (%d+)$')
  if all[i] == ARGV[1] then
    newest = tonumber(number) or 0
  else
    open = open + (tonumber(calls) or 0)
    table.insert(reply, all[i])
  end
end
local most = tonumber(ARGV[4])
if most > 0 and open > most then
  reply[1] = '0'
elseif tonumber(ARGV[2]) > newest then
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. ' ' .. ARGV[3])
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
end
return reply
