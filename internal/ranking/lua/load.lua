-- load.lua writes a part of a copy, whose keys expire and aren't read yet; or it merges names into existing ones.
--
-- KEYS  1 the copy's owner, or the first key to add to if it has no owner   2… the keys to add to; a names key is
--       followed by banned
-- ARGV  1 content of the first key while the caller owns the copy, '' if there is no owner   2 ms that the keys live,
--       '' to leave their expiry unchanged
--       for each key to add to: set, hash, text or names, number of values, the values
--         (score, member, …; field, value, …; one text; member, its entry in names, …)
--
-- Returns {loaded}, or {lost} if the caller no longer owns the copy. A repeated call changes nothing. A member who
-- was erased since gets no name.

-- include greater.lua
-- include names.lua

local call = redis.call
local SLICE = 7000 -- values per command; unpack returns at most 8,000

if ARGV[1] ~= '' and call('GET', KEYS[1]) ~= ARGV[1] then return {'lost'} end
local time = call('TIME')
local expires = ARGV[2] ~= '' and string.format('%.0f', tonumber(time[1]) * 1000 + tonumber(ARGV[2]))

local function addName(names, banned, id, name)
  local text, found = call('HGET', names, id), readName(name)
  if not found or string.match(call('HGET', banned, ':' .. id) or '', '^eras') then return end
  local now = nameText(laterName(readName(text), unpack(found)))
  if now ~= text then call('HSET', names, id, now) end
end

local arg, i = 3, 2
while arg <= #ARGV do
  local kind, last = ARGV[arg], arg + 1 + tonumber(ARGV[arg + 1])
  for first = arg + 2, last, SLICE do
    local to = math.min(first + SLICE - 1, last)
    if kind == 'set' then
      call('ZADD', KEYS[i], unpack(ARGV, first, to))
    elseif kind == 'hash' then
      call('HSET', KEYS[i], unpack(ARGV, first, to))
    elseif kind == 'text' then
      call('SET', KEYS[i], ARGV[first])
    end
  end
  for n = arg + 2, kind == 'names' and last or 0, 2 do addName(KEYS[i], KEYS[i + 1], ARGV[n], ARGV[n + 1]) end
  if expires then call('PEXPIREAT', KEYS[i], expires) end
  arg, i = last + 1, i + (kind == 'names' and 2 or 1)
end
return {'loaded'}
