-- Reads the values of a group.
-- KEYS: the names of the group, sorted by when they end.
-- ARGV: the prefix of a value's key before its name.
-- Returns name, version, group, body and end of each.
local all = {}
for _, name in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  local v = redis.call('HMGET', ARGV[1] .. name, 'version', 'group', 'body', 'ends')
  if v[1] then
    all[#all + 1] = {name, v[1], v[2], v[3], v[4]}
  end
end
return all
