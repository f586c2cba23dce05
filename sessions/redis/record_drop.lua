-- Forgets a record if its body is still the one that was read.
-- KEYS: as of record.lua. ARGV: the name, the body.
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then
  return 0
end
return redis.call('HDEL', KEYS[1], ARGV[1])
