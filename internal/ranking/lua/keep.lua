-- keep.lua says until when keys live, while a lock is ours.
--
-- KEYS  1 the lock   2… the keys
-- ARGV  1 what the lock holds while it is ours   2 which of the keys have to be there: none, or a number: of so many of
--       the last ones, which come in pairs, one of two, and of the others all   3 until when, Unix ms: for each key (then
--       3 is each, and 5… say it), or for all: a time, '' for ever, remove, or choose, which changes nothing   4 ms from
--       now on, to choose
--
-- Returns one of
--   {kept, until when, number of keys that were removed}
--   {lost, key}    the lock isn't ours any more, or a key is gone: nothing was changed

local call = redis.call

if call('GET', KEYS[1]) ~= ARGV[1] then return {'lost', KEYS[1]} end
local single = #KEYS - (tonumber(ARGV[2]) or #KEYS)
for i = 2, single do
  if call('EXISTS', KEYS[i]) == 0 then return {'lost', KEYS[i]} end
end
for i = math.max(single + 1, 2), ARGV[2] == 'none' and 0 or #KEYS, 2 do
  if call('EXISTS', KEYS[i], KEYS[i + 1]) == 0 then return {'lost', KEYS[i]} end
end
local at = ARGV[3]
if at == 'choose' then
  local time = call('TIME')
  return {'kept', string.format('%.0f', tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000 + tonumber(ARGV[4])), 0}
end
local removed = 0
for i = 2, #KEYS do
  if at == 'each' then at = nil end
  local till = at or ARGV[i + 3]
  if till == 'remove' then
    removed = removed + call('UNLINK', KEYS[i])
  elseif till == '' then
    call('PERSIST', KEYS[i])
  else
    call('PEXPIREAT', KEYS[i], till)
  end
end
return {'kept', at or '', removed}
