-- Drops whole keys.
-- KEYS: which. Returns how many there were.
return redis.call('DEL', unpack(KEYS))
