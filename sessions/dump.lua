-- Returns every key as {name, type, milliseconds to live or -1, values}, all of one moment.
-- Values are flat: field, value for a hash; member, score for a sorted set.
local read = {
  string = function(key) return {redis.call('GET', key)} end,
  hash = function(key) return redis.call('HGETALL', key) end,
  list = function(key) return redis.call('LRANGE', key, 0, -1) end,
  set = function(key) return redis.call('SMEMBERS', key) end,
  zset = function(key) return redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') end,
}
local all = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind = redis.call('TYPE', key)['ok']
  if not read[kind] then
    return redis.error_reply('ERR cannot keep ' .. key .. ' of type ' .. kind)
  end
  all[#all + 1] = {key, kind, redis.call('PTTL', key), read[kind](key)}
end
return all
