-- Begins every script that writes what belongs to a caller. Refuses, and changes nothing, when a newer life than the
-- writer's has begun, whether it still goes on or not.
-- KEYS: the newest epoch, then those of the script. ARGV: the writer's epoch, then those of the script.
local newest, epoch = table.remove(KEYS, 1), table.remove(ARGV, 1)
if tonumber(redis.call('GET', newest) or 0) > tonumber(epoch) then
  return redis.error_reply('ELSEWHERE a newer life has begun')
end
