-- Sets field ARGV[1] of the hash KEYS[1] to ARGV[2] and keeps the hash for ARGV[3] milliseconds from now.
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
