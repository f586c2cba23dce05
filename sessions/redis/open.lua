-- Reads a page of a caller's open entries, oldest first, and forgets those that have expired.
-- KEYS: the caller's open entries.
-- ARGV: what comes before an entry's name in its key, how many to leave out, how many to read.
-- Returns how many to leave out for the next page, -1 after the last, and each entry as field, value, ...;
-- one that is no hash without any.
local before, skip, count = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local members = redis.call('ZRANGE', KEYS[1], skip, skip + count - 1)
local all, gone = {}, 0
for _, member in ipairs(members) do
  local flat = redis.pcall('HGETALL', before .. member)
  if flat.err then
    all[#all + 1] = {}
  elseif #flat == 0 then
    redis.call('ZREM', KEYS[1], member)
    gone = gone + 1
  else
    all[#all + 1] = flat
  end
end
if #members < count then
  return {-1, all}
end
return {skip + count - gone, all}
