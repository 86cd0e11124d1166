-- load.lua writes a part of a copy: keys that nobody reads yet, and that expire; or it adds names to those there are.
--
-- KEYS  1 whose copy it is, or the first key to add to if there is none   2… the keys to add to, names followed by banned
-- ARGV  1 what the first holds while the copy is ours, '' if there is none   2 ms that the keys live, '' for as they do
--       for each key to add to: set, hash, text or names, number of values, the values
--         (score, member, …; field, value, …; one text; member, name as names has it, …)
--
-- Returns {loaded}, or {lost} where the copy isn't ours any more. To send it again changes nothing. Who was erased since
-- isn't named again.

-- include greater.lua
-- include names.lua

local call = redis.call
local SLICE = 7000 -- values a command; unpack carries at most 8,000

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
