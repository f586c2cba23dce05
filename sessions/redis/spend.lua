-- Notes that the call ARGV[1] has spent ARGV[2] so far, in the hash KEYS[2], and adds what is new to the number KEYS[1].
-- Both are kept for ARGV[3] milliseconds from now. Returns the sum.
local new = ARGV[2] - (redis.call('HGET', KEYS[2], ARGV[1]) or 0)
if new > 0 then
  redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
  redis.call('PEXPIRE', KEYS[2], ARGV[3])
end
local sum = redis.call('INCRBY', KEYS[1], string.format('%.0f', math.max(new, 0)))
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return sum
