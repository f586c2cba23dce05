-- Drops a document.
-- KEYS: the owner's documents sorted by when they end, the document. ARGV: the document's id.
-- Returns 1 if there was such a document.
redis.call('ZREM', KEYS[1], ARGV[1])
return redis.call('DEL', KEYS[2])
