-- Keeps a record of the installation, unless there are too many of its kind.
-- KEYS: the records of the kind by name.
-- ARGV: the name, the record, 1 to leave one that is there as it is, how many there may be.
-- Returns the record that is there then, in a list; an empty one: there are too many.
local there = redis.call('HGET', KEYS[1], ARGV[1])
if there and ARGV[3] == '1' then
  return {there}
end
if not there and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[4]) then
  return {}
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return {ARGV[2]}
