-- Takes or renews the lease KEYS[1] with the value ARGV[1] for ARGV[2] milliseconds.
-- Returns "" when it is ours, else the value of its holder. Safe to repeat.
local held = redis.call('GET', KEYS[1])
if held and held ~= ARGV[1] then
  return held
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return ''
