-- Stores a login, and replaces one with the same id.
-- KEYS: a hash from the ids of the principal's logins to the hashes of their tokens, the login.
-- ARGV: the id, the token's hash, the login, the prefix of a login's key before the hash, when it ends in Unix
-- milliseconds.
local old = redis.call('HGET', KEYS[1], ARGV[1])
if old and old ~= ARGV[2] then
  redis.call('DEL', ARGV[4] .. old)
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('SET', KEYS[2], ARGV[3], 'PXAT', ARGV[5])
if redis.call('PTTL', KEYS[1]) < redis.call('PTTL', KEYS[2]) then
  redis.call('PEXPIREAT', KEYS[1], ARGV[5])
end
return 1
