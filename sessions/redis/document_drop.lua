-- Drops a document.
-- KEYS: the owner's documents by when they end, the document. ARGV: its id.
-- Returns 1 if it was there.
redis.call('ZREM', KEYS[1], ARGV[1])
return redis.call('DEL', KEYS[2])
