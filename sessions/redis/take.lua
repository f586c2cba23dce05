-- Takes a caller's home, unless an instance has it that is not known to be dead.
-- KEYS: the home. ARGV: who takes it, who is known to be dead or "".
-- Returns who has it then, and in which epoch. A newer epoch is always greater, also in a Redis that came back empty or
-- as it was a while ago.
local epoch, id = string.match(redis.call('GET', KEYS[1]) or '0 ', '^(%d+) (.*)$')
if id ~= '' and id ~= ARGV[1] and id ~= ARGV[2] then
  return {id, tonumber(epoch)}
end
local now = redis.call('TIME')
epoch = math.max(tonumber(epoch) + 1, tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000))
redis.call('SET', KEYS[1], string.format('%d ', epoch) .. ARGV[1])
return {ARGV[1], epoch}
