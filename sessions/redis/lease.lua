-- Takes or renews the lease KEYS[1] with the value ARGV[1] for ARGV[2] milliseconds.
-- Returns {"", 0} when it is ours, else the value of its holder and when it expires, in Unix milliseconds of
-- this Redis; -1 never. Safe to repeat.
local held = redis.call('GET', KEYS[1])
if held and held ~= ARGV[1] then
  local left = redis.call('PTTL', KEYS[1])
  if left < 0 then
    return {held, -1}
  end
  local now = redis.call('TIME')
  return {held, tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000) + left}
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {'', 0}
