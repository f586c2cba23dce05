-- Adds ARGV[1] to the number KEYS[1], keeps it for ARGV[2] milliseconds from now, and returns the sum.
local sum = redis.call('INCRBY', KEYS[1], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return sum
