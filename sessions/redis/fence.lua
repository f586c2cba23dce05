-- Begins every script that writes data of a caller. Refuses, and changes nothing, if a newer life than the writer's has
-- begun, or has taken the caller's home, whether that life still goes on or not.
-- KEYS: a value that begins with the newest epoch, then the keys of the script. ARGV: the writer's epoch, then the
-- arguments of the script.
local newest, epoch = table.remove(KEYS, 1), table.remove(ARGV, 1)
if tonumber(string.match(redis.call('GET', newest) or '0', '^%d+')) > tonumber(epoch) then
  return redis.error_reply('ELSEWHERE a newer life has begun')
end
