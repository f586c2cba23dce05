-- Reads a page of a caller's open entries, oldest first, and drops those that have expired.
-- KEYS: the caller's open entries.
-- ARGV: the prefix of an entry's key before its name, how many to skip, how many to read.
-- Returns how many to skip for the next page, -1 after the last page, and each entry as field, value, ... An entry that
-- is not a hash has no fields.
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
