-- Stores a machine if what is stored is still as it was read.
-- KEYS: a hash from the machines' public keys to the machines.
-- ARGV: the public key, the machine, its name and its body as they were read; no name: there was no machine.
-- Returns 1 if it did.
local there = redis.call('HGET', KEYS[1], ARGV[1])
if not there and ARGV[3] ~= '' or there and ARGV[3] == '' then
  return 0
end
if there then
  local is = cjson.decode(there)
  local body = type(is.Body) == 'string' and is.Body or ''
  if is.Name ~= ARGV[3] or body ~= ARGV[4] then
    return 0
  end
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1
