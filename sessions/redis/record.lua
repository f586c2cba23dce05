-- Stores a record of the installation unless there are too many of its kind.
-- KEYS: a hash from the names of the kind's records to their bodies.
-- ARGV: the name, the body, 1 to keep a record that is already there, how many there may be.
-- Returns a list of the stored body, or an empty list if there are too many.
local there = redis.call('HGET', KEYS[1], ARGV[1])
if there and ARGV[3] == '1' then
  return {there}
end
if not there and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[4]) then
  return {}
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return {ARGV[2]}
