-- Drops field ARGV[1] of the hash KEYS[1].
return redis.call('HDEL', KEYS[1], ARGV[1])
