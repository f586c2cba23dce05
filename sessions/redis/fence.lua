-- Begins every script that writes what belongs to a caller. Refuses, and changes nothing, when a newer life than the
-- writer's has begun, or has the caller's home, whether it still goes on or not.
-- KEYS: what begins with the newest epoch, then those of the script. ARGV: the writer's epoch, then those of the
-- script.
local newest, epoch = table.remove(KEYS, 1), table.remove(ARGV, 1)
if tonumber(string.match(redis.call('GET', newest) or '0', '^%d+')) > tonumber(epoch) then
  return redis.error_reply('ELSEWHERE a newer life has begun')
end
