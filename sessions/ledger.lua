-- One step of one entry of the ledger: compare, set, and return what is there then.
-- What may follow what comes from Go's table: the statuses that the step may leave and those beyond it.
-- Safe to repeat: the same step of the same owner is found written and changes nothing.
-- KEYS: the entry, the caller's open entries, the callers that have any, the lease.
-- ARGV: owner, hash of the arguments, to, attempt or "", "1" to make the entry, "1" to adopt it,
--   the statuses to leave for an own entry, for an inherited one, the statuses beyond,
--   milliseconds to live while open, once delivered, the entry's name among the open ones, its caller's,
--   its score there, how many of the following words are for a new entry only, who must hold the lease for
--   this step if anybody does, or "", the turn of a step to started or "", then field, value, ...
-- A list of statuses is ",accepted,started,"; ",," stands for no entry.
-- Returns the verdict and the entry as field, value, ... The verdict is "elsewhere", and nothing is
-- changed, when somebody else holds the lease.
local owner, args, to, attempt, new, adopt, from_own, from_inherited, beyond = unpack(ARGV, 1, 9)
local open_for, kept_for, member, caller, score, first, holder, turn = unpack(ARGV, 10, 17)

if holder ~= '' and (redis.call('GET', KEYS[4]) or holder) ~= holder then
  return {'elsewhere', {}}
end

local entry = {}
local flat = redis.call('HGETALL', KEYS[1])
for i = 1, #flat, 2 do
  entry[flat[i]] = flat[i + 1]
end
local status = entry.status or ''
local from = entry.inherited == '1' and from_inherited or from_own

local function among(list)
  return string.find(list, ',' .. status .. ',', 1, true)
end

local function judge()
  if status == '' then
    return new == '1' and among(from) and 'applied' or 'missing'
  elseif entry.args ~= args then
    return 'conflict'
  elseif adopt == '1' then
    return entry.owner == owner and 'same' or 'applied'
  elseif entry.owner ~= owner then
    return 'taken'
  elseif status == to and (attempt == '' or attempt == entry.attempt) and (turn == '' or turn == entry.turn) then
    return 'same'
  elseif among(from) and (attempt == '' or tonumber(attempt) > tonumber(entry.attempt or 0)) then
    return 'applied'
  elseif among(beyond) or status == to and tonumber(entry.attempt) > tonumber(attempt) then
    return 'past'
  end
  return 'illegal'
end

local verdict = judge()
if verdict == 'applied' then
  local begin = 18
  if status ~= '' then
    begin = begin + tonumber(first)
  end
  if adopt == '1' then
    redis.call('HSET', KEYS[1], 'owner', owner, 'inherited', '1')
  else
    redis.call('HSET', KEYS[1], 'status', to, unpack(ARGV, begin))
    status = to
  end
  flat = redis.call('HGETALL', KEYS[1])
end
if verdict == 'applied' or verdict == 'same' then
  if status == 'delivered' then
    redis.call('PEXPIRE', KEYS[1], kept_for)
    redis.call('ZREM', KEYS[2], member)
    if redis.call('EXISTS', KEYS[2]) == 0 then
      redis.call('SREM', KEYS[3], caller)
    end
  else
    redis.call('PEXPIRE', KEYS[1], open_for)
    redis.call('ZADD', KEYS[2], 'NX', score, member)
    redis.call('PEXPIRE', KEYS[2], open_for)
    redis.call('SADD', KEYS[3], caller)
    redis.call('PEXPIRE', KEYS[3], open_for)
  end
end
return {verdict, flat}
