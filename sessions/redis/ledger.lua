-- One step of one entry of the ledger: compare, set, and return what is there then.
-- The allowed transitions come from Go's table: the statuses that the step may leave, and those beyond its target.
-- Safe to repeat: a second identical step of the same owner changes nothing.
-- KEYS: the entry, the caller's open entries, the entry's body, the caller's unheard outcomes, the caller's history.
-- ARGV: the owner, the hash of the arguments, the new status, the attempt or "", "1" to make the entry, "1" to adopt
--   it, the statuses to leave of an own entry and of an inherited one, the statuses beyond,
--   for how many milliseconds history is kept, the entry's name, the time,
--   how many of the fields and values at the end are for a new entry only, the turn of a step to started or "",
--   the whole prompt or "", the whole answer or "",
--   the prefix of an entry's key before its name, the same for its body, how many outcomes may be unheard,
--   how many bytes history keeps of a prompt, of a title and of what was said, what was done or "",
--   owner and status of an entry to replace, or "" twice, the whole request or "", "1" to keep the stored request,
--   for how many milliseconds an entry without texts is kept,
--   then field, value, ...
-- A list of statuses is ",accepted,started,"; ",," stands for no entry.
-- Returns the result and the entry as field, value, ... When there was no entry, the result is "made" and no fields
-- follow: the caller knows them from the step.
local owner, args, to, attempt, new, adopt, from_own, from_inherited, beyond = unpack(ARGV, 1, 9)
local kept_for, member, at, first, turn, prompt, text = unpack(ARGV, 10, 16)
local entries, bodies, unheard, short_prompt, short_title, short_spoken, did = unpack(ARGV, 17, 23)
local former_owner, former_status, request, keeps, key_for = unpack(ARGV, 24, 28)

local function read(key)
  local entry, flat = {}, redis.call('HGETALL', key)
  for i = 1, #flat, 2 do
    entry[flat[i]] = flat[i + 1]
  end
  return entry, flat
end

local entry, flat = read(KEYS[1])
if former_status ~= '' and entry.owner == former_owner and entry.status == former_status then
  redis.call('DEL', KEYS[1], KEYS[3])
  redis.call('ZREM', KEYS[2], member)
  redis.call('ZREM', KEYS[4], member)
  redis.call('ZREM', KEYS[5], member)
  entry, flat = {}, {}
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

-- Shortens a field to a limit in bytes as Go's table does: never within a character.
local function cut(key, e, field, limit)
  local value, last = e[field], tonumber(limit)
  if not value or #value <= last then
    return
  end
  while last > 0 do
    local b = string.byte(value, last + 1)
    if b < 128 or b > 191 then
      break
    end
    last = last - 1
  end
  redis.call('HSET', key, field, string.sub(value, 1, last))
end

-- Moves an entry to the history.
local function pass(name)
  local key = entries .. name
  local e = read(key)
  redis.call('HDEL', key, 'call', 'watermark')
  cut(key, e, 'prompt', short_prompt)
  cut(key, e, 'title', short_title)
  cut(key, e, 'spoken', short_spoken)
  redis.call('ZREM', KEYS[2], name)
  redis.call('ZREM', KEYS[4], name)
  if e.unkept == '1' then
    redis.call('PEXPIRE', key, key_for)
    return
  end
  redis.call('PEXPIRE', key, kept_for)
  redis.call('PEXPIRE', bodies .. name, kept_for)
  redis.call('ZREMRANGEBYSCORE', KEYS[5], '-inf', tonumber(at) - tonumber(kept_for))
  redis.call('ZADD', KEYS[5], at, name)
  redis.call('PEXPIRE', KEYS[5], kept_for)
end

local result = judge()
local past = redis.call('ZSCORE', KEYS[5], member)
local done = result == 'applied' or result == 'same'
if result == 'applied' then
  local begin = 29
  if status == '' then
    result, entry = 'made', {accepted = at, ended = at}
  else
    begin = begin + tonumber(first)
  end
  if adopt == '1' then
    redis.call('HSET', KEYS[1], 'owner', owner, 'inherited', '1')
  else
    redis.call('HSET', KEYS[1], 'status', to, unpack(ARGV, begin))
    status = to
  end
  if prompt ~= '' then
    redis.call('HSET', KEYS[3], 'prompt', prompt)
  end
  if text ~= '' then
    redis.call('HSET', KEYS[3], 'text', text)
  end
  if did ~= '' then
    redis.call('HSET', KEYS[3], 'did', did)
  end
  if request ~= '' then
    redis.call('HSET', KEYS[3], 'request', request)
  elseif keeps ~= '1' then
    redis.call('HDEL', KEYS[3], 'request')
  end
  if status == 'delivered' then
    if adopt ~= '1' then
      pass(member)
    end
  elseif not past then
    redis.call('PERSIST', KEYS[1])
    redis.call('PERSIST', KEYS[3])
  end
  if result ~= 'made' then
    entry, flat = read(KEYS[1])
  end
end
if done and status ~= 'delivered' and not past then
  redis.call('ZADD', KEYS[2], 'NX', entry.accepted, member)
  redis.call('PERSIST', KEYS[2])
  if status == 'completed' then
    redis.call('ZADD', KEYS[4], 'NX', entry.ended, member)
    while redis.call('ZCARD', KEYS[4]) > tonumber(unheard) do
      pass(redis.call('ZRANGE', KEYS[4], 0, 0)[1])
    end
  end
end
return {result, flat}
