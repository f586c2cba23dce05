-- Forgets an app of a principal.
-- KEYS: the principal's apps by when they end, the app.
-- ARGV: its id.
-- Returns 1 if it was there.
if redis.call('ZREM', KEYS[1], ARGV[1]) == 0 then
  return 0
end
return redis.call('DEL', KEYS[2])
