-- Releases the lease KEYS[1] if its value is still ARGV[1]. Returns 1 if it was.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
