-- paste.lua writes a part of a copy: keys that nobody reads yet, and that expire.
--
-- KEYS  1 whose copy it is   2… the keys to add to
-- ARGV  1 what the first holds while the copy is ours   2 ms that the keys live
--       for each key, in the order of KEYS: set, hash or text, number of values, the values
--         (score, member, …; field, value, …; one text)
--
-- Returns {pasted}, or {lost} where the copy isn't ours any more.

local call = redis.call
local SLICE = 7000 -- values a command; unpack carries at most 8,000

if call('GET', KEYS[1]) ~= ARGV[1] then return {'lost'} end
local time = call('TIME')
local expires = string.format('%.0f', tonumber(time[1]) * 1000 + tonumber(ARGV[2]))
local arg = 3
for i = 2, #KEYS do
  local kind, last = ARGV[arg], arg + 1 + tonumber(ARGV[arg + 1])
  for first = arg + 2, last, SLICE do
    local to = math.min(first + SLICE - 1, last)
    if kind == 'set' then
      call('ZADD', KEYS[i], unpack(ARGV, first, to))
    elseif kind == 'hash' then
      call('HSET', KEYS[i], unpack(ARGV, first, to))
    else
      call('SET', KEYS[i], ARGV[first])
    end
  end
  call('PEXPIREAT', KEYS[i], expires)
  arg = last + 1
end
return {'pasted'}
