-- Forgets an app of a principal.
-- KEYS: the principal's apps sorted by when they end, the app.
-- ARGV: the app's id.
-- Returns 1 if there was such an app.
if redis.call('ZREM', KEYS[1], ARGV[1]) == 0 then
  return 0
end
return redis.call('DEL', KEYS[2])
