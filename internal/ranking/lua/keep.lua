-- keep.lua sets when keys expire, if the caller holds a lock.
--
-- KEYS  1 the lock   2… the keys
-- ARGV  1 content of the lock while the caller holds it
--       2 which keys must exist: none; or a number n: of the last n keys, which come in pairs, at least one of each
--         pair, and all other keys; '' for all
--       3 when all keys expire: a time in Unix ms, '' for never, remove, or choose, which changes nothing; or each,
--         if ARGV 5… has that for each key
--       4 ms from now, for choose
--
-- Returns one of
--   {kept, the time or '', number of keys removed}
--   {lost, key}    the caller no longer holds the lock, or a key is gone: nothing was changed

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
