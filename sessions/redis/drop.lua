-- Drops whole keys.
-- KEYS: the keys. Returns how many of them there were.
return redis.call('DEL', unpack(KEYS))
