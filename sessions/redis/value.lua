-- Stores or drops a value if what is stored is as it was read.
-- KEYS: the value as a hash of its version, group and body; the names of its group, sorted by when they end.
-- ARGV: the version that was read, the new one or "" to drop the value, the name, the group, the body, when it ends in
-- Unix milliseconds or "+inf", now, how many a group may have or 0.
-- Returns 1 if it was changed, 0 if what is stored differs, -1 if there are too many.
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', ARGV[7])
local there = redis.call('HMGET', KEYS[1], 'version', 'ends')
if there[1] and there[2] ~= '+inf' and tonumber(there[2]) <= tonumber(ARGV[7]) then
  redis.call('DEL', KEYS[1]) -- it has ended by the clock of who changes it
  there[1] = false
end
if (there[1] or '') ~= ARGV[1] then
  return 0
end
if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
  redis.call('ZREM', KEYS[2], ARGV[3])
  return 1
end
if ARGV[1] == '' and ARGV[8] ~= '0' and redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[8]) then
  return -1
end
redis.call('HSET', KEYS[1], 'version', ARGV[2], 'group', ARGV[4], 'body', ARGV[5], 'ends', ARGV[6])
redis.call('ZADD', KEYS[2], ARGV[6], ARGV[3])
if ARGV[6] == '+inf' then
  redis.call('PERSIST', KEYS[1])
  redis.call('PERSIST', KEYS[2])
  return 1
end
redis.call('PEXPIREAT', KEYS[1], ARGV[6])
local last = redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2]
if last ~= 'inf' then
  redis.call('PEXPIREAT', KEYS[2], last)
end
return 1
